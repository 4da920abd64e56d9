/* A small stand-in for ROCm SMI: two GPUs, in an order that is not HIP's. -DROCM5: the older layout of frequencies.
   FAKE_RSMI_MODE: unsupported (every query is RSMI_STATUS_NOT_SUPPORTED), hang (the power never comes).      */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 2 };

static int mode(const char *name) {
    const char *text = getenv("FAKE_RSMI_MODE");
    return text && strcmp(text, name) == 0;
}
#define QUERY(value) do { if (mode("unsupported")) return NOT_SUPPORTED; value; return OK; } while (0)

typedef struct {
#ifndef ROCM5
    _Bool has_deep_sleep;
#endif
    uint32_t count, current;
    uint64_t frequency[33];
} Frequencies;

int rsmi_init(uint64_t flags) { return flags ? 1 : OK; }
int rsmi_shut_down(void) { return OK; }
int rsmi_num_monitor_devices(uint32_t *count) { *count = 2; return OK; }
int rsmi_dev_pci_id_get(uint32_t index, uint64_t *id) { *id = (uint64_t)(0xc2 - index) << 8; return OK; }
int rsmi_dev_unique_id_get(uint32_t index, uint64_t *id) { QUERY(*id = 0xabc0 + index); }
int rsmi_dev_memory_usage_get(uint32_t index, uint32_t kind, uint64_t *used) { (void)kind; QUERY(*used = (300ull + index) << 20); }
int rsmi_dev_memory_total_get(uint32_t index, uint32_t kind, uint64_t *total) { (void)index; (void)kind; QUERY(*total = 196592ull << 20); }
int rsmi_dev_vbios_version_get(uint32_t index, char *text, uint32_t length) { (void)index; QUERY(snprintf(text, length, "113-M3000100-102")); }
int rsmi_dev_power_cap_get(uint32_t index, uint32_t sensor, uint64_t *value) { (void)index; (void)sensor; QUERY(*value = 750000000); }
#ifdef ROCM5
int rsmi_dev_power_ave_get(uint32_t index, uint32_t sensor, uint64_t *value) { (void)index; (void)sensor; QUERY(*value = 140000000); }
#else
int rsmi_dev_current_socket_power_get(uint32_t index, uint64_t *value) {
    (void)index;
    if (mode("hang")) for (;;) pause();
    QUERY(*value = 140000000);
}
#endif
int rsmi_dev_energy_count_get(uint32_t index, uint64_t *counts, float *resolution, uint64_t *stamp) {
    struct timespec now;
    (void)index;
    clock_gettime(CLOCK_MONOTONIC, &now); /* a card that draws 140 W, in counts of 16 microjoules */
    *stamp = 0;
    QUERY((*resolution = 16.0f, *counts = (uint64_t)(140e6 / 16 * ((double)now.tv_sec + (double)now.tv_nsec / 1e9))));
}
int rsmi_dev_temp_metric_get(uint32_t index, uint32_t sensor, int metric, int64_t *value) {
    (void)index; (void)metric;
    if (sensor == 0) return NOT_SUPPORTED; /* an Instinct has no sensor at its edge */
    QUERY(*value = 47000);
}
int rsmi_dev_gpu_clk_freq_get(uint32_t index, int kind, Frequencies *found) {
    (void)index;
#ifndef ROCM5
    found->has_deep_sleep = 0;
#endif
    QUERY((found->count = 3, found->current = 1, found->frequency[0] = kind ? 900000000ull : 132000000ull,
           found->frequency[1] = kind ? 1100000000ull : 1500000000ull, found->frequency[2] = kind ? 1300000000ull : 2100000000ull));
}
int rsmi_dev_busy_percent_get(uint32_t index, uint32_t *value) { (void)index; QUERY(*value = 88); }
int rsmi_version_str_get(int component, char *text, uint32_t length) { (void)component; QUERY(snprintf(text, length, "6.12.12")); }
