/* A small stand-in for AMD's HIP runtime: two MI300X, or with -DROCM5 an MI250X as ROCm 5 shows it, in the older
   layout of the properties. FAKE_HIP_INIT: what hipInit returns (0). FAKE_HIP_COUNT: devices (2).            */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned flags : 17; } Arch;
#ifdef ROCM5
typedef struct {
    char name[256]; size_t total, shared; int registers, warp, threads, block[3], grid[3], clock, memory_clock, bus;
    size_t constant; int major, minor, units, l2, resident, mode, instruction_clock; Arch arch; int concurrent;
    int domain, pci_bus, pci_device; size_t shared_unit; int board, map_host, gcn_number; char gcn[256]; int rest[80];
} Properties;
#define PROPERTIES hipGetDeviceProperties
#define GFX "gfx90a:sramecc+:xnack-"
#define NAME "AMD Instinct MI250X"
#define UNITS 110
#define CLOCK 1700000
#define L2 8388608
#define MEMORY 68702699520u
#else
typedef struct {
    char name[256], uuid[16], luid[8]; unsigned mask; size_t total, shared; int registers, warp; size_t pitch;
    int threads, block[3], grid[3], clock; size_t constant; int major, minor; size_t texture, texture_pitch;
    int overlap, units, timeout, integrated, map_host, mode, t1, t1m, t1l, t2[2], t2m[2], t2l[3], t2g[2], t3[3], t3a[3];
    int tc, t1a[2], t2a[3], tca[2], s1, s2[2], s3[3], s1l[2], s2l[3], sc, scl[2]; size_t surface;
    int concurrent, ecc, bus, device, domain, tcc, engines, unified, memory_clock, memory_bus, l2, persisting, resident;
    int priorities, gl1, ll1; size_t shared_unit; int registers_unit, managed, board, group, atomic, ratio, pageable;
    int concurrent_managed, preemption, host_pointer, cooperative, cooperative_multi; size_t shared_optin;
    int host_tables, direct, blocks, window; size_t reserved_shared; int host_register, sparse, read_only, semaphore;
    int pools, rdma; unsigned rdma_flush; int rdma_order; unsigned handles; int deferred, ipc, cluster, pointers;
    int reserved[63], hip_reserved[32]; char gcn[256]; size_t shared_unit_max; int instruction_clock; Arch arch;
    unsigned *a, *b; int rest[6];
} Properties;
#define PROPERTIES hipGetDevicePropertiesR0600
#define GFX "gfx942:sramecc+:xnack-"
#define NAME "AMD Instinct MI300X"
#define UNITS 304
#define CLOCK 2100000
#define L2 4194304
#define MEMORY 206141652992u
#endif

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

int hipInit(unsigned flags) { return flags ? 1 : number("FAKE_HIP_INIT", 0); }
int hipRuntimeGetVersion(int *version) { *version = 70051831; return 0; }
int hipGetDeviceCount(int *count) { *count = number("FAKE_HIP_COUNT", 2); return *count ? 0 : 100; }
int hipDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, (size_t)length, NAME); return 0; }
int hipDeviceTotalMem(size_t *bytes, int device) { (void)device; *bytes = MEMORY; return 0; }
int hipDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02X:00.0", 0xc1 + device);
    return 0;
}
int PROPERTIES(Properties *properties, int device) {
    (void)device;
    memset(properties, 0, sizeof *properties);
    strcpy(properties->gcn, GFX);
    return 0;
}
int hipDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
        case 5: *value = CLOCK; return 0;
        case 19: *value = L2; return 0;
        case 56: *value = 1024; return 0;
        case 59: *value = 8192; return 0;
        case 60: *value = 1300000; return 0;
        case 63: *value = UNITS; return 0;
        case 87: *value = 64; return 0;
        case 10017: *value = 100000; return 0;
        default: return 1;
    }
}
