/* A small stand-in for NVML: devices by UUID, as the stand-in for libcuda names them, told what to do by the
   environment.

   FAKE_NVML_INIT     what nvmlInitWithFlags returns (0)
   FAKE_NVML_MODE     unsupported: every optional query is NVML_ERROR_NOT_SUPPORTED
                      hang: reading the power never returns, from read FAKE_NVML_AFTER on
                      hang_second: reading the power of the second device never returns
                      hang_init: starting never returns
                      crash: starting dies of a signal
                      full: every number is the largest that its field holds
                      lost: every query is NVML_ERROR_GPU_IS_LOST, from read FAKE_NVML_AFTER on
                      stranger: it knows none of the devices
   FAKE_NVML_AFTER    how many reads of the power succeed (0)
   FAKE_NVML_SM       the SM clock (585), FAKE_NVML_REASONS: the bits of the reasons (1)
   FAKE_NVML_HOT      number of reads of the reasons after which thermal slowdown sets in
   FAKE_NVML_LOG      a file that takes a line for each clock that is locked or given back
   FAKE_NVML_PERMIT   clocks may be locked; FAKE_NVML_KEEP: but not given back
   FAKE_NVML_LATIN    the versions hold a letter that is not UTF-8
   FAKE_NVML_LIMIT    the power limit in W (70)
   FAKE_NVML_USED     MiB of memory in use (450), FAKE_NVML_ALONE: no process is seen

   -DOLD leaves out what old drivers lack.                                                                    */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15 };

typedef struct { int index, slice; } Device;
static Device devices[] = {{0, 0}, {1, 0}, {0, 1}};
static const char *uuids[] = {
    "GPU-64656667-6869-6a6b-6c6d-6e6f70717273",
    "GPU-65666768-696a-6b6c-6d6e-6f7071727374",
    "MIG-c8c9cacb-cccd-cecf-d0d1-d2d3d4d5d6d7",
};
static int power_reads, reason_reads, locked;

static int number(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

static int mode(const char *name) {
    const char *text = getenv("FAKE_NVML_MODE");
    return text && strcmp(text, name) == 0;
}

static void note(const char *what) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) { fprintf(file, "%s\n", what); fclose(file); }
}

static void hang(void) { for (;;) pause(); }

static int optional(void) {
    if (mode("unsupported")) return NOT_SUPPORTED;
    if (mode("lost") && power_reads > number("FAKE_NVML_AFTER", 0)) return LOST;
    return OK;
}

#define QUERY(value) do { int status = optional(); if (status) return status; value; return OK; } while (0)

int nvmlInitWithFlags(unsigned flags) {
    if (mode("hang_init")) hang();
    if (mode("crash")) raise(SIGSEGV);
    return flags ? 2 : number("FAKE_NVML_INIT", OK);
}
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    snprintf(text, length, getenv("FAKE_NVML_LATIN") ? "580.\xe9" : "580.95.05");
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **device) {
    if (mode("stranger")) return NOT_FOUND;
    for (int i = 0; i < 3; i++)
        if (strcmp(uuid, uuids[i]) == 0) { *device = &devices[i]; return OK; }
    return NOT_FOUND;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, Device **device) {
    if (mode("stranger") || strcmp(address, "0000:3b:00.0") != 0) return NOT_FOUND;
    *device = &devices[0];
    return OK;
}
int nvmlDeviceGetUUID(Device *device, char *text, unsigned length) {
    QUERY(snprintf(text, length, "%s", uuids[device - devices]));
}
#ifndef OLD
int nvmlDeviceIsMigDeviceHandle(Device *device, unsigned *is) { *is = (unsigned)device->slice; return OK; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *device, Device **whole) {
    *whole = &devices[device->index];
    return OK;
}
int nvmlDeviceGetMigMode(Device *device, unsigned *now, unsigned *pending) {
    (void)device;
    QUERY((*now = *pending = (unsigned)number("FAKE_NVML_MIG", 0)));
}
int nvmlDeviceGetArchitecture(Device *device, unsigned *value) { (void)device; QUERY(*value = 6); }
int nvmlDeviceGetNumGpuCores(Device *device, unsigned *value) { (void)device; QUERY(*value = 2560); }
int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *millijoules) {
    struct timespec now;
    (void)device;
    clock_gettime(CLOCK_MONOTONIC, &now); /* a card that draws 50 W */
    QUERY(*millijoules = mode("full") ? ~0ull : 50ull * (unsigned long long)(now.tv_sec * 1000 + now.tv_nsec / 1000000));
}
int nvmlDeviceSetGpuLockedClocks(Device *device, unsigned low, unsigned high) {
    (void)device; (void)low;
    if (!number("FAKE_NVML_PERMIT", 0)) return NO_PERMISSION;
    note("locked");
    locked = high == 0xffffff01u ? 1005 : (int)high; /* the clock that the power limit always leaves */
    return OK;
}
int nvmlDeviceResetGpuLockedClocks(Device *device) {
    (void)device;
    if (!number("FAKE_NVML_PERMIT", 0) || number("FAKE_NVML_KEEP", 0)) return NO_PERMISSION;
    note("given back");
    locked = 0;
    return OK;
}
#endif
int nvmlDeviceGetCurrPcieLinkGeneration(Device *d, unsigned *value) { (void)d; QUERY(*value = 1); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device *d, unsigned *value) { (void)d; QUERY(*value = 3); }
int nvmlDeviceGetCurrPcieLinkWidth(Device *d, unsigned *value) { (void)d; QUERY(*value = 8); }
int nvmlDeviceGetMaxPcieLinkWidth(Device *d, unsigned *value) { (void)d; QUERY(*value = 16); }
int nvmlDeviceGetMemoryInfo(Device *d, unsigned long long memory[3]) {
    unsigned long long total = d->slice ? 4864ull << 20 : 15360ull << 20, used = d->slice ? 12ull << 20 : (unsigned long long)number("FAKE_NVML_USED", 450) << 20;
    if (mode("full")) total = used = ~0ull;
    QUERY((memory[0] = total, memory[1] = total - used, memory[2] = used));
}
int nvmlDeviceGetEccMode(Device *d, unsigned *now, unsigned *pending) { (void)d; QUERY((*now = 1, *pending = 0)); }
int nvmlDeviceGetVbiosVersion(Device *d, char *text, unsigned length) {
    (void)d;
    QUERY(snprintf(text, length, getenv("FAKE_NVML_LATIN") ? "90.04.\xe9" : "90.04.96.00.02"));
}
int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *value) { (void)d; QUERY(*value = 1000u * (unsigned)number("FAKE_NVML_LIMIT", 70)); }
int nvmlDeviceGetPowerManagementDefaultLimit(Device *d, unsigned *value) { (void)d; QUERY(*value = 70000); }
int nvmlDeviceGetPowerManagementLimitConstraints(Device *d, unsigned *low, unsigned *high) {
    (void)d;
    QUERY((*low = 60000, *high = 70000));
}
int nvmlDeviceGetPowerUsage(Device *d, unsigned *value) {
    (void)d;
    power_reads++;
    if (mode("hang_second") && d->index == 1) hang();
    if (mode("hang") && power_reads > number("FAKE_NVML_AFTER", 0)) hang();
    QUERY(*value = mode("full") ? ~0u : 9850);
}
int nvmlDeviceGetTemperature(Device *d, int sensor, unsigned *value) { (void)d; (void)sensor; QUERY(*value = mode("full") ? ~0u : 42); }
int nvmlDeviceGetClockInfo(Device *d, int kind, unsigned *value) {
    (void)d;
    QUERY(*value = mode("full") ? ~0u : kind == 1 ? (locked ? (unsigned)locked : (unsigned)number("FAKE_NVML_SM", 585)) : 5000u);
}
int nvmlDeviceGetMaxClockInfo(Device *d, int kind, unsigned *value) { (void)d; QUERY(*value = mode("full") ? ~0u : kind == 1 ? 1590 : 5001); }
int nvmlDeviceGetUtilizationRates(Device *d, unsigned rates[2]) {
    (void)d;
    QUERY((rates[0] = mode("full") ? ~0u : 97, rates[1] = 30));
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, unsigned long long *bits) {
    (void)d;
    reason_reads++;
    QUERY(*bits = reason_reads > number("FAKE_NVML_HOT", 1 << 30) ? 0x20ull : (unsigned long long)number("FAKE_NVML_REASONS", 1));
}
int nvmlDeviceGetPersistenceMode(Device *d, unsigned *value) { (void)d; QUERY(*value = 1); }
int nvmlDeviceGetComputeMode(Device *d, unsigned *value) { (void)d; QUERY(*value = 0); }

struct process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };
int nvmlDeviceGetComputeRunningProcesses_v2(Device *d, unsigned *count, struct process *found) {
    int status = optional();
    unsigned room = *count;
    (void)d;
    if (status) return status;
    *count = number("FAKE_NVML_ALONE", 0) ? 0 : 1;
    if (*count == 0) return OK;
    if (room < 1 || !found) return TOO_SMALL;
    found[0].pid = 4242;
    found[0].memory = 300ull << 20;
    return OK;
}
