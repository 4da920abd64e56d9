// A libcuda whose device memory is shared memory: enough of the driver for two processes to share an arena.
// It has no name but the descriptor of its process, so that a test that is killed leaves none behind.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct { char reserved[64]; } Handle;
static struct { void *address; int file; } made[16];
static int count;

int cuMemAlloc_v2(void **address, size_t size) {
    if (getenv("FAKE_NO_MEMORY")) return 2;
    int file = memfd_create("kmrun-fake", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size)) return 999;
    *address = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    made[count].address = *address;
    made[count++].file = file;
    return 0;
}

int cuIpcGetMemHandle(Handle *handle, void *address) {
    if (getenv("FAKE_NO_EXPORT")) return 801;
    for (int i = 0; i < count; i++)
        if (made[i].address == address)
            return snprintf(handle->reserved, 64, "/proc/%d/fd/%d", (int)getpid(), made[i].file) < 0;
    return 1;
}

int cuIpcOpenMemHandle_v2(void **address, Handle handle, unsigned flags) {
    if (getenv("FAKE_NO_OPEN") || flags != 1) return 201;
    int file = open(handle.reserved, O_RDWR | O_CLOEXEC);
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
        if (made[i].address == address) return close(made[i].file);
    return 1;
}
