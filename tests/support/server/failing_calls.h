/*
 * failing_calls.h: system calls and allocations, of which a chosen one fails.
 *
 * The functions here replace those of the C library, and do the same unless one is to fail. So a program includes this
 * file once, before any other.
 */
#ifndef TESTS_FAILING_CALLS_H
#define TESTS_FAILING_CALLS_H

#undef _FORTIFY_SOURCE /* whose forms of them are inline */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 0 /* the sanitizer has taken it */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 0
#endif
#endif
#ifndef HAS_OWN_MALLOC
#define HAS_OWN_MALLOC 1
#endif

static struct {
    const char *call; /* NULL: none is to fail */
    int skip;         /* as many pass before; below 0: it has failed */
    int reason;
    bool is_for_good; /* every later call fails, too */
} fault;

static inline bool fails(const char *call)
{
    if (fault.call == NULL || strcmp(fault.call, call) != 0)
        return false;
    if (fault.skip > 0 || (fault.skip < 0 && !fault.is_for_good)) {
        fault.skip--;
        return false;
    }
    fault.skip = -1;
    errno = fault.reason;
    return true;
}

int openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return fails("openat") ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int fstat(int fd, struct stat *about)
{
    if (fails("fstat"))
        return -1;
    const int outcome = fstatat(fd, "", about, AT_EMPTY_PATH);
    if (fails("sweep")) /* which has removed the file by now */
        about->st_nlink = 0;
    return outcome;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails("mmap") ? MAP_FAILED : (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* With reason 0 nothing is written. */
ssize_t write(int fd, const void *from, size_t bytes)
{
    if (fails("write"))
        return fault.reason == 0 ? 0 : -1;
    return syscall(SYS_write, fd, from, bytes);
}

int flock(int fd, int operation)
{
    return fails("flock") ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int fsync(int fd)
{
    return fails("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return fails("renameat") ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int unlinkat(int folder, const char *path, int flags)
{
    return fails("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

#if HAS_OWN_MALLOC
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

void *malloc(size_t bytes)
{
    return fails("malloc") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails("calloc") ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return fails("realloc") ? NULL : __libc_realloc(block, bytes);
}
#endif

#endif
