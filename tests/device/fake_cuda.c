/* A small stand-in for NVIDIA's driver library: two devices, told by the environment what to be.

   FAKE_CUDA_INIT     what cuInit returns (0)
   FAKE_CUDA_COUNT    number of devices (2)
   FAKE_CUDA_NAME     name of device 0 (Tesla T4); device 1 is an unheard-of one
   FAKE_CUDA_CC       its compute capability (7.5)                                                            */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

int cuInit(unsigned flags) { return flags ? 1 : number("FAKE_CUDA_INIT", 0); }

int cuDriverGetVersion(int *version) { *version = 13000; return 0; }

int cuDeviceGetCount(int *count) { *count = number("FAKE_CUDA_COUNT", 2); return 0; }

int cuDeviceGet(int *device, int ordinal) { *device = 100 + ordinal; return 0; }

int cuDeviceGetName(char *name, int length, int device) {
    const char *first = getenv("FAKE_CUDA_NAME");
    strncpy(name, device == 100 ? (first ? first : "Tesla T4") : "NVIDIA Unheard Of", (size_t)length);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = device == 100 ? 15655829504u : 8589934592u;
    return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(device + i);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const char *cc = getenv("FAKE_CUDA_CC");
    int major = cc ? atoi(cc) : 7, minor = cc ? atoi(strchr(cc, '.') + 1) : 5;
    if (device != 100) { major = 8; minor = 6; }
    switch (attribute) {
        case 1: *value = 1024; return 0;
        case 8: *value = 49152; return 0;
        case 10: *value = 32; return 0;
        case 12: *value = 65536; return 0;
        case 13: *value = device == 100 ? 1590000 : 2000000; return 0;
        case 16: *value = device == 100 ? 40 : 10; return 0;
        case 36: *value = device == 100 ? 5001000 : 7000000; return 0;
        case 37: *value = device == 100 ? 256 : 128; return 0;
        case 38: *value = 4194304; return 0;
        case 39: *value = device == 100 ? 1024 : 1536; return 0;
        case 75: *value = major; return 0;
        case 76: *value = minor; return 0;
        case 81: *value = device == 100 ? 65536 : 102400; return 0;
        case 82: *value = 65536; return 0;
        case 97: *value = device == 100 ? 65536 : 101376; return 0;
        case 106: *value = 16; return 0;
        case 111: *value = device == 100 ? 0 : 1024; return 0;
        default: return 1; /* CUDA_ERROR_INVALID_VALUE: a number that this driver does not know */
    }
}
