/* A small stand-in for NVIDIA's driver library: two devices, told by the environment what to be.

   FAKE_CUDA_INIT       what cuInit returns (0); hang: it never does, crash: it dies of a signal, chat: it writes to
                        standard output
   FAKE_CUDA_COUNT      number of devices (2)
   FAKE_CUDA_MACHINE    t4 (a T4 and an unheard-of device), h100 (H100s), mig (a slice of an A100)
   FAKE_CUDA_NAME       name of device 0 (Tesla T4)
   FAKE_CUDA_CC         its compute capability (7.5)
   FAKE_CUDA_NEWER      a driver newer than any table: it knows attribute 170, too
   FAKE_CUDA_SET        attributes of all devices that are to be others, `13=-1,16=0`
   FAKE_CUDA_REFUSE     numbers of attributes that fail with FAKE_CUDA_STATUS (801), `75,16`
   FAKE_CUDA_NO_UUID    _v2 (it is not supported), both (nor is the older one), zero (both give zeros)
   FAKE_CUDA_HANG       ordinal of a device whose attributes never come
   FAKE_CUDA_FAIL_FROM  ordinal of the first device whose attributes fail half-way, as of a GPU that is lost

   -DOLD leaves out what old drivers lack, -DANCIENT also what every driver of the last decade has.          */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID_VALUE = 1, UNKNOWN = 999 };

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

static int machine_is(const char *name) {
    const char *text = getenv("FAKE_CUDA_MACHINE");
    return strcmp(text ? text : "t4", name) == 0;
}

int cuInit(unsigned flags) {
    const char *text = getenv("FAKE_CUDA_INIT");
    if (text && strcmp(text, "hang") == 0) for (;;) pause();
    if (text && strcmp(text, "crash") == 0) raise(SIGSEGV);
    if (text && strcmp(text, "chat") == 0) { puts("driver: hello"); fflush(stdout); }
    return flags ? 1 : number("FAKE_CUDA_INIT", 0);
}

int cuDriverGetVersion(int *version) { *version = 13000; return 0; }

int cuDeviceGetCount(int *count) { *count = number("FAKE_CUDA_COUNT", machine_is("mig") ? 1 : 2); return 0; }

int cuDeviceGet(int *device, int ordinal) { *device = 100 + ordinal; return 0; }

int cuDeviceGetName(char *name, int length, int device) {
    const char *first = getenv("FAKE_CUDA_NAME"), *own;
    if (machine_is("h100")) own = "NVIDIA H100 80GB HBM3";
    else if (machine_is("mig")) own = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
    else own = device == 100 ? (first ? first : "Tesla T4") : "NVIDIA Unheard Of";
    strncpy(name, own, (size_t)length);
    return 0;
}

#ifndef ANCIENT
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    if (machine_is("h100")) *bytes = 84929347584u;
    else if (machine_is("mig")) *bytes = 5100273664u;
    else *bytes = device == 100 ? 15655829504u : 8589934592u;
    return 0;
}
#endif

#ifndef OLD
int cuDeviceGetUuid(unsigned char *uuid, int device) {
    const char *refused = getenv("FAKE_CUDA_NO_UUID");
    if (refused && strcmp(refused, "both") == 0) return 801;
    if (refused && strcmp(refused, "zero") == 0) { memset(uuid, 0, 16); return 0; }
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(device + i);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    if (getenv("FAKE_CUDA_NO_UUID")) return 801;
    for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)((machine_is("mig") ? 200 : device) + i);
    return 0;
}
#endif

static int common(int *value, int attribute) {
    switch (attribute) {
        case 1: *value = 1024; return 0;
        case 8: *value = 49152; return 0;
        case 10: *value = 32; return 0;
        case 12: *value = 65536; return 0;
        case 33: *value = 59; return 0;
        case 34: *value = 0; return 0;
        case 50: *value = 0; return 0;
        case 82: *value = 65536; return 0;
        case 170: *value = 42; return number("FAKE_CUDA_NEWER", 0) ? 0 : INVALID_VALUE;
        default: return INVALID_VALUE; /* a number that this driver does not know */
    }
}

static int hopper(int *value, int attribute) {
    switch (attribute) {
        case 13: *value = 1980000; return 0;
        case 16: *value = 132; return 0;
        case 36: *value = 2619000; return 0;
        case 37: *value = 5120; return 0;
        case 38: *value = 52428800; return 0;
        case 39: *value = 2048; return 0;
        case 75: *value = 9; return 0;
        case 76: *value = 0; return 0;
        case 81: *value = 233472; return 0;
        case 97: *value = 232448; return 0;
        case 106: *value = 32; return 0;
        case 111: *value = 1024; return 0;
        default: return common(value, attribute);
    }
}

static int slice(int *value, int attribute) {
    switch (attribute) {
        case 13: *value = 1410000; return 0;
        case 16: *value = 14; return 0;
        case 36: *value = 1215000; return 0;
        case 37: *value = 5120; return 0;
        case 38: *value = 5242880; return 0;
        case 75: *value = 8; return 0;
        case 76: *value = 0; return 0;
        default: return common(value, attribute);
    }
}

static int refused(int attribute) {
    const char *list = getenv("FAKE_CUDA_REFUSE");
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (atoi(list) == attribute) return 1;
    return 0;
}

static int set(int *value, int attribute) {
    const char *list = getenv("FAKE_CUDA_SET");
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (atoi(list) == attribute) { *value = atoi(strchr(list, '=') + 1); return 1; }
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    const char *cc = getenv("FAKE_CUDA_CC");
    int major = cc ? atoi(cc) : 7, minor = cc ? atoi(strchr(cc, '.') + 1) : 5, first = device == 100;
    if (device - 100 == number("FAKE_CUDA_HANG", -1)) for (;;) pause();
    if (set(value, attribute)) return 0;
    if (refused(attribute)) return number("FAKE_CUDA_STATUS", 801);
    if (attribute == 40 && device - 100 >= number("FAKE_CUDA_FAIL_FROM", 1000)) return UNKNOWN;
    if (machine_is("h100")) return hopper(value, attribute);
    if (machine_is("mig")) return slice(value, attribute);
    if (!first) { major = 8; minor = 6; }
    switch (attribute) {
        case 13: *value = first ? 1590000 : 2000000; return 0;
        case 16: *value = first ? 40 : 10; return 0;
        case 36: *value = first ? 5001000 : 7000000; return 0;
        case 37: *value = first ? 256 : 128; return 0;
        case 38: *value = 4194304; return 0;
        case 39: *value = first ? 1024 : 1536; return 0;
        case 75: *value = major; return 0;
        case 76: *value = minor; return 0;
        case 81: *value = first ? 65536 : 102400; return 0;
        case 97: *value = first ? 65536 : 101376; return 0;
        case 106: *value = 16; return 0;
        case 111: *value = first ? 0 : 1024; return 0;
        default: return common(value, attribute);
    }
}
