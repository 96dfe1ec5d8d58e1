/*
 * shim.c: makes a chosen call of the server fail. Preloaded; torture.py drives it through a mapped file, FAULT_CONTROL.
 *
 * Each class of calls counts what it saw. While a class is armed, its countdown falls by one with every call; the call
 * that takes it to zero fails as a machine would make it fail, and with `for_good` all that follow as well. Blocks that
 * malloc gave and nobody freed are counted too: that shows what leaks without a tool that is too slow for thousands of
 * faults.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* torture.py has the same list. */
enum fault_class {
    FAULT_ALLOC,
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SHORT, /* half of what was to be written to a file; a socket does so only when it is full */
    FAULT_FSYNC,
    FAULT_RENAME,
    FAULT_UNLINK,
    FAULT_STAT,
    FAULT_MMAP,
    FAULT_ACCEPT,
    FAULT_RECV,
    FAULT_SEND,
    FAULT_EPOLL,
    FAULT_WAIT,
    FAULT_THREAD,
    FAULT_CLASSES
};

/* The mapped file: int64 each. */
struct control {
    int64_t armed; /* bit 1 << class */
    int64_t countdown;
    int64_t for_good;
    int64_t given;   /* faults */
    int64_t blocks;  /* of malloc, alive */
    int64_t at_main; /* armed when main begins: what libraries do before is not ours */
    int64_t seen[FAULT_CLASSES];
};

static struct control nowhere;
static struct control *control = &nowhere;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAULT_CONTROL");
    const long fd = path != NULL ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    const long at = syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (at > 0)
        control = (struct control *)at;
}

static int (*real_main)(int, char **, char **);

static int armed_main(int count, char **words, char **environment)
{
    __atomic_or_fetch(&control->armed, control->at_main, __ATOMIC_RELEASE);
    return real_main(count, words, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int count, char **words, void (*begin)(void),
                      void (*end)(void), void (*linker_end)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int count, char **words, void (*begin)(void),
                      void (*end)(void), void (*linker_end)(void), void *stack_end)
{
    int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return start(armed_main, count, words, begin, end, linker_end, stack_end);
}

static bool fails(enum fault_class class)
{
    __atomic_add_fetch(&control->seen[class], 1, __ATOMIC_RELAXED);
    if (!(__atomic_load_n(&control->armed, __ATOMIC_ACQUIRE) >> class & 1))
        return false;
    const int64_t left = __atomic_fetch_sub(&control->countdown, 1, __ATOMIC_RELAXED);
    if (left > 1 || (left < 1 && !control->for_good))
        return false;
    __atomic_add_fetch(&control->given, 1, __ATOMIC_RELAXED);
    return true;
}

static int give(int reason)
{
    errno = reason;
    return -1;
}

#define FAIL_IF(class, reason)                                                                                         \
    if (fails(class))                                                                                                  \
    return give(reason)

/* ---- memory ---- */

/* glibc's own names, which need no dlsym: that would allocate. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static void *counted(void *block)
{
    if (block != NULL)
        __atomic_add_fetch(&control->blocks, 1, __ATOMIC_RELAXED);
    return block;
}

static bool has_no_memory(void)
{
    if (!fails(FAULT_ALLOC))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return has_no_memory() ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return has_no_memory() ? NULL : counted(__libc_calloc(count, bytes));
}

void *realloc(void *block, size_t bytes)
{
    if (block == NULL)
        return malloc(bytes);
    if (bytes > 0)
        return has_no_memory() ? NULL : __libc_realloc(block, bytes);
    free(block);
    return NULL;
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return has_no_memory() ? NULL : counted(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    void *taken = memalign(alignment, bytes);
    if (taken == NULL)
        return ENOMEM;
    *block = taken;
    return 0;
}

void free(void *block)
{
    if (block != NULL)
        __atomic_sub_fetch(&control->blocks, 1, __ATOMIC_RELAXED);
    __libc_free(block);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails(FAULT_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* ---- files ---- */

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    FAIL_IF(FAULT_OPEN, EMFILE);
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = (mode_t)va_arg(more, unsigned);                                                                         \
        va_end(more);                                                                                                  \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(folder, path, flags, mode);
}

static size_t shortened(size_t bytes)
{
    return bytes > 1 && fails(FAULT_SHORT) ? bytes / 2 : bytes;
}

/* The disk and the log. Descriptors by which threads wake each other have neither room to run out of nor halves. */
static bool can_fill_up(int fd)
{
    struct stat about;
    return fd == STDERR_FILENO || (fstatat(fd, "", &about, AT_EMPTY_PATH) == 0 && S_ISREG(about.st_mode));
}

ssize_t read(int fd, void *to, size_t bytes)
{
    if (!can_fill_up(fd))
        return syscall(SYS_read, fd, to, bytes);
    FAIL_IF(FAULT_READ, EIO);
    return syscall(SYS_read, fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    FAIL_IF(FAULT_READ, EIO);
    return syscall(SYS_pread64, fd, to, bytes, at);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    if (!can_fill_up(fd))
        return syscall(SYS_write, fd, from, bytes);
    FAIL_IF(FAULT_WRITE, ENOSPC);
    return syscall(SYS_write, fd, from, shortened(bytes));
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    FAIL_IF(FAULT_WRITE, ENOSPC);
    return syscall(SYS_pwrite64, fd, from, shortened(bytes), at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    FAIL_IF(FAULT_WRITE, ENOSPC);
    return syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd)
{
    FAIL_IF(FAULT_FSYNC, EIO);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    FAIL_IF(FAULT_FSYNC, EIO);
    return (int)syscall(SYS_fdatasync, fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    FAIL_IF(FAULT_RENAME, EIO);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int folder, const char *path, int flags)
{
    FAIL_IF(FAULT_UNLINK, EIO);
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int fstat(int fd, struct stat *about)
{
    FAIL_IF(FAULT_STAT, EIO);
    return fstatat(fd, "", about, AT_EMPTY_PATH);
}

/* ---- the network ---- */

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict length, int flags)
{
    FAIL_IF(FAULT_ACCEPT, EMFILE);
    return (int)syscall(SYS_accept4, fd, address.__sockaddr__, length, flags);
}

int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
    return accept4(fd, address, length, 0);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    FAIL_IF(FAULT_RECV, ECONNRESET);
    return syscall(SYS_recvfrom, fd, to, bytes, flags, NULL, NULL);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    FAIL_IF(FAULT_SEND, ECONNRESET);
    return syscall(SYS_sendto, fd, from, bytes, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    FAIL_IF(FAULT_SEND, ECONNRESET);
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t sendfile64(int to, int from, off_t *at, size_t bytes);
ssize_t sendfile64(int to, int from, off_t *at, size_t bytes)
{
    FAIL_IF(FAULT_SEND, EIO);
    return syscall(SYS_sendfile, to, from, at, bytes);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    if (operation == EPOLL_CTL_ADD) /* the others take nothing that could run out */
        FAIL_IF(FAULT_EPOLL, ENOSPC);
    return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout)
{
    FAIL_IF(FAULT_WAIT, EINTR);
    return (int)syscall(SYS_epoll_pwait, epoll, events, count, timeout, NULL, 8);
}

/* ---- threads ---- */

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails(FAULT_THREAD))
        return EAGAIN;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, attributes, start, argument);
}
