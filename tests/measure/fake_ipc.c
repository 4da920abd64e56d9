// A libcuda whose device memory is POSIX shared memory: enough of the driver for two processes to share an arena.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct { char reserved[64]; } Handle;
static struct { void *address; size_t size; char name[64]; } made[16];
static int count;

int cuMemAlloc_v2(void **address, size_t size) {
    if (getenv("FAKE_NO_MEMORY")) return 2;
    char name[64];
    snprintf(name, sizeof name, "/kmrun-fake-%d-%d", (int)getpid(), count);
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, (off_t)size)) return 999;
    *address = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    made[count].address = *address;
    made[count].size = size;
    strcpy(made[count++].name, name);
    return 0;
}

int cuIpcGetMemHandle(Handle *handle, void *address) {
    if (getenv("FAKE_NO_EXPORT")) return 801;
    for (int i = 0; i < count; i++)
        if (made[i].address == address) { memcpy(handle->reserved, made[i].name, 64); return 0; }
    return 1;
}

int cuIpcOpenMemHandle_v2(void **address, Handle handle, unsigned flags) {
    if (getenv("FAKE_NO_OPEN") || flags != 1) return 201;
    int file = shm_open(handle.reserved, O_RDWR, 0600);
    struct stat about;
    if (file < 0 || fstat(file, &about)) return 999;
    // FAKE_STRANGE: opening succeeds, and what is mapped is other memory.
    *address = mmap(0, about.st_size, PROT_READ | PROT_WRITE,
                    getenv("FAKE_STRANGE") ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
                    getenv("FAKE_STRANGE") ? -1 : file, 0);
    close(file);
    return 0;
}

int cuIpcCloseMemHandle(void *address) { return address ? 0 : 1; }

int cuMemFree_v2(void *address) {
    for (int i = 0; i < count; i++)
        if (made[i].address == address) { shm_unlink(made[i].name); return 0; }
    return 1;
}
