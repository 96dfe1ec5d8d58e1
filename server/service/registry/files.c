/* files.c: the directory with the files of layers. */
#include "service/registry/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const char SUFFIX[] = ".safetensors", TEMPORARY[] = ".attnd-";

enum { FILE_NAME_MAX = LAYER_NAME_MAX + sizeof SUFFIX, DRAFT_TRIES = 100 };

/*
 * The bytes handed to the disk at a time. The disk writes one piece while the next is copied and added to the digest.
 */
enum { PIECE_BYTES = 4 << 20 };

struct layer_files {
    int directory;
    bool may_write;
    atomic_uint_fast64_t drafts;
};

bool layer_name_is_valid(const char *name, size_t length)
{
    return text_is_name(name, length, LAYER_NAME_MAX) && name[0] != '.';
}

bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes && a->modified_ns == b->modified_ns &&
           a->changed_ns == b->changed_ns;
}

bool file_identity_is_rewritten(const struct file_identity *then, const struct file_identity *now)
{
    return then->inode != 0 && then->inode == now->inode && then->device == now->device &&
           !file_identity_equal(then, now);
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct file_identity identity_of(const struct stat *stat)
{
    return (struct file_identity){stat->st_dev, stat->st_ino, stat->st_size, nanoseconds(stat->st_mtim),
                                  nanoseconds(stat->st_ctim)};
}

static const char *file_name(const char *name, char text[FILE_NAME_MAX])
{
    snprintf(text, FILE_NAME_MAX, "%s%s", name, SUFFIX);
    return text;
}

/* ---- the directory ---- */

int layer_files_open(const char *path, bool may_write, struct layer_files **files)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno;
    *files = malloc(sizeof **files);
    if (*files == NULL) {
        close(directory);
        return ENOMEM;
    }
    **files = (struct layer_files){.directory = directory, .may_write = may_write};
    return 0;
}

void layer_files_close(struct layer_files *files)
{
    if (files == NULL)
        return;
    close(files->directory);
    free(files);
}

int layer_files_follow(const struct layer_files *files, const char *path, bool *is_another)
{
    struct stat now, then;
    *is_another = false;
    if (stat(path, &now) != 0)
        return errno == ENOENT || errno == ENOTDIR ? ENOENT : 0; /* otherwise nothing is known */
    if (fstat(files->directory, &then) != 0 || (now.st_dev == then.st_dev && now.st_ino == then.st_ino))
        return 0;
    const int opened = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
        return errno;
    *is_another = dup3(opened, files->directory, O_CLOEXEC) == files->directory;
    const int outcome = *is_another ? 0 : errno;
    close(opened);
    return outcome;
}

int layer_files_lock(const struct layer_files *files)
{
    return flock(files->directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK ? EWOULDBLOCK : 0;
}

void layer_files_unlock(const struct layer_files *files)
{
    (void)flock(files->directory, LOCK_UN);
}

DIR *file_list(int directory)
{
    const int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = own < 0 ? NULL : fdopendir(own);
    const int outcome = errno;
    if (list == NULL && own >= 0)
        close(own);
    errno = outcome;
    return list;
}

static bool names_layer(const char *file, char name[LAYER_NAME_MAX + 1])
{
    const size_t length = strlen(file), end = sizeof SUFFIX - 1;
    if (!text_ends(file, SUFFIX) || !layer_name_is_valid(file, length - end))
        return false;
    snprintf(name, LAYER_NAME_MAX + 1, "%.*s", (int)(length - end), file);
    return true;
}

int layer_files_each(const struct layer_files *files, int (*found)(void *context, const char *name), void *context)
{
    char name[LAYER_NAME_MAX + 1];
    DIR *list = file_list(files->directory);
    const struct dirent *entry;
    int outcome = 0;
    if (list == NULL)
        return errno;
    while (outcome == 0 && (errno = 0, entry = readdir(list)) != NULL)
        if (names_layer(entry->d_name, name))
            outcome = found(context, name);
    if (outcome == 0)
        outcome = errno;
    closedir(list);
    return outcome;
}

/* ---- one file ---- */

int file_look(int directory, const char *path, struct file_identity *identity)
{
    enum { TRIES = 10 };
    struct stat stat = {.st_nlink = 0};
    /* Without a link, the file was replaced while it was looked at, which changes its ctime. Its path has another file. */
    for (int i = 0; i < TRIES && stat.st_nlink == 0; i++)
        if (fstatat(directory, path, &stat, 0) != 0)
            return errno;
    *identity = identity_of(&stat);
    return S_ISREG(stat.st_mode) ? 0 : ENOENT;
}

int layer_files_look(const struct layer_files *files, const char *name, struct file_identity *identity)
{
    char file[FILE_NAME_MAX];
    return file_look(files->directory, file_name(name, file), identity);
}

bool layer_files_has_config(const struct layer_files *files)
{
    struct file_identity identity;
    return file_look(files->directory, "config.json", &identity) == 0;
}

static int map(int fd, size_t size, struct file_bytes *bytes)
{
    struct mapping *mapping = NULL;
    const int outcome = size > 0 ? mapping_add(fd, size, &mapping) : 0;
    if (outcome == 0)
        *bytes = (struct file_bytes){mapping != NULL ? mapping_bytes(mapping) : NULL, size, mapping};
    return outcome;
}

/*
 * Whether a program has the file open for writing: then the system refuses a lease. It refuses all leases of files that
 * belong to another user, and then nothing is known. While there is a lease, a program that opens the file waits, and
 * its opening sends a signal, by default one that ends the process.
 */
static bool has_writer(int fd)
{
    if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

/*
 * Fills in *stat when the last change is old enough. The system's clock of files moves on every 1 to 10 ms, so a file
 * that changed a moment ago can change again and keep its times. A program that has the file open may write more. But it
 * may also have forgotten to close it, so it is not waited for without end.
 */
static int stat_at_rest(int fd, struct stat *stat)
{
    enum { REST_NS = 20000000, OPEN_REST_NS = 2000000000, TRIES = 3 };
    for (int i = 0; i < TRIES; i++) {
        struct timespec now, rest = {.tv_nsec = REST_NS};
        if (fstat(fd, stat) != 0)
            return errno;
        if (!S_ISREG(stat->st_mode))
            return ENOENT;
        clock_gettime(CLOCK_REALTIME, &now);
        const int64_t age = nanoseconds(now) - nanoseconds(stat->st_ctim);
        if (age >= 0 && age <= OPEN_REST_NS && has_writer(fd))
            return ETXTBSY;
        if (age < 0 || age > REST_NS)
            return 0;
        nanosleep(&rest, NULL);
    }
    return ETXTBSY;
}

static int map_file(int fd, struct file_bytes *bytes, struct file_identity *identity)
{
    struct stat stat;
    const int outcome = stat_at_rest(fd, &stat);
    if (outcome != 0)
        return outcome;
    *identity = identity_of(&stat);
    return map(fd, (size_t)stat.st_size, bytes);
}

const char *file_reason(int error, char *text, size_t size)
{
    return error == ETXTBSY ? "a program is writing to it" : strerror_r(error, text, size);
}

int layer_files_map(const struct layer_files *files, const char *name, struct file_bytes *bytes,
                    struct file_identity *identity)
{
    char file[FILE_NAME_MAX];
    return file_map(files->directory, file_name(name, file), bytes, identity);
}

int file_map(int directory, const char *path, struct file_bytes *bytes, struct file_identity *identity)
{
    /* O_NONBLOCK, because opening a FIFO of that name would wait for a writer. */
    const int fd = openat(directory, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int outcome = map_file(fd, bytes, identity);
    close(fd);
    return outcome;
}

void file_bytes_release(struct file_bytes *bytes)
{
    if (bytes->mapping != NULL)
        mapping_remove(bytes->mapping);
    else if (bytes->size > 0)
        munmap((void *)(uintptr_t)bytes->at, bytes->size);
    *bytes = (struct file_bytes){.at = NULL};
}

bool file_bytes_are_torn(const struct file_bytes *bytes)
{
    return bytes->mapping != NULL && mapping_is_torn(bytes->mapping);
}

int file_bytes_copy(const struct chunks *content, struct file_bytes *bytes)
{
    const size_t size = content->total_bytes;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return errno;
    *bytes = (struct file_bytes){.at = at, .size = size};
    for (const struct chunk *chunk = content->first; chunk != NULL; chunk = chunk->next) {
        memcpy(at, chunk->data, chunk->length);
        at += chunk->length;
    }
    return 0;
}

/* ---- writing ---- */

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, data, length);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written == 0)
            return EIO;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

/* Creates a new file and locks it before a sweep could take it for an orphan. */
static int create_draft(struct layer_files *files, struct layer_draft *draft)
{
    for (int i = 0; i < DRAFT_TRIES; i++) {
        struct stat stat;
        const uint64_t number = atomic_fetch_add(&files->drafts, 1);
        snprintf(draft->name, sizeof draft->name, "%s%ld-%llu", TEMPORARY, (long)getpid(), (unsigned long long)number);
        draft->fd = openat(files->directory, draft->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (draft->fd < 0 && errno != EEXIST)
            return errno;
        if (draft->fd < 0)
            continue;
        const bool is_known = flock(draft->fd, LOCK_EX | LOCK_NB) == 0 && fstat(draft->fd, &stat) == 0;
        if (is_known && stat.st_nlink > 0)
            return 0;
        if (!is_known) /* otherwise a sweep has removed the file */
            (void)unlinkat(files->directory, draft->name, 0);
        close(draft->fd);
    }
    return EEXIST;
}

int layer_files_begin(struct layer_files *files, struct layer_draft *draft)
{
    *draft = (struct layer_draft){.fd = -1};
    digest_begin(&draft->sum);
    return files->may_write ? create_draft(files, draft) : EROFS;
}

static int write_pieces(struct layer_draft *draft, const char *data, size_t length)
{
    int outcome = 0;
    while (length > 0 && outcome == 0) {
        const size_t some = length < PIECE_BYTES ? length : PIECE_BYTES;
        outcome = write_all(draft->fd, data, some);
        (void)sync_file_range(draft->fd, draft->written, (off_t)some, SYNC_FILE_RANGE_WRITE); /* the disk begins */
        draft->written += (off_t)some;
        data += some;
        length -= some;
    }
    return outcome;
}

int layer_files_append(struct layer_draft *draft, const char *data, size_t length)
{
    const int outcome = write_pieces(draft, data, length);
    digest_add(&draft->sum, data, length);
    return outcome;
}

/* The rest of a draft. One task writes it, another adds it to the digest; both take about the same time. */
struct rest {
    struct layer_draft *draft;
    const struct chunks *content;
    size_t there;
    int outcome; /* the result of the first task */
};

enum { REST_WRITE, REST_SUM, REST_TASKS };

static void rest_task(void *argument, size_t index, size_t worker)
{
    struct rest *rest = argument;
    size_t there = rest->there;
    (void)worker;
    for (const struct chunk *chunk = rest->content->first; chunk != NULL; chunk = chunk->next) {
        const size_t skipped = there < chunk->length ? there : chunk->length, length = chunk->length - skipped;
        there -= skipped;
        if (index == REST_SUM)
            digest_add(&rest->draft->sum, chunk->data + skipped, length);
        else if (rest->outcome == 0)
            rest->outcome = write_pieces(rest->draft, chunk->data + skipped, length);
    }
}

/* Maps a file that was written by a descriptor that only reads: the mapping of one that writes counts as a writer. */
static int map_draft(const struct layer_files *files, struct layer_draft *draft)
{
    const int fd = openat(files->directory, draft->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    const int outcome = map(fd, (size_t)draft->written, &draft->bytes);
    close(fd);
    return outcome;
}

int layer_files_write(struct layer_files *files, const struct chunks *content, const attn_runtime *runtime,
                      struct layer_draft *draft, char digest[DIGEST_TEXT])
{
    const attn_runtime serial = attn_runtime_serial(NULL);
    uint8_t sum[DIGEST_BYTES];
    int outcome = draft->fd < 0 ? layer_files_begin(files, draft) : 0;
    if (outcome != 0)
        return outcome;
    struct rest rest = {.draft = draft, .content = content, .there = (size_t)draft->written};
    if (runtime == NULL)
        runtime = &serial;
    runtime->run(runtime->context, REST_TASKS, rest_task, &rest);
    digest_end(&draft->sum, sum);
    digest_write(sum, digest);
    outcome = rest.outcome;
    if (outcome == 0)
        outcome = map_draft(files, draft);
    if (outcome != 0)
        layer_files_discard(files, draft);
    return outcome;
}

int layer_files_sync(const struct layer_draft *draft)
{
    return fsync(draft->fd) != 0 ? errno : 0;
}

static void close_draft(struct layer_draft *draft)
{
    close(draft->fd); /* also releases the lock */
    draft->fd = -1;
}

void layer_files_discard(const struct layer_files *files, struct layer_draft *draft)
{
    (void)unlinkat(files->directory, draft->name, 0); /* on a failure, a sweep removes the name */
    close_draft(draft);
}

int layer_files_commit(const struct layer_files *files, struct layer_draft *draft, const char *name,
                       struct file_identity *identity, bool *is_renamed)
{
    char file[FILE_NAME_MAX];
    struct stat stat;
    *is_renamed = false;
    if (renameat(files->directory, draft->name, files->directory, file_name(name, file)) != 0) {
        const int outcome = errno;
        layer_files_discard(files, draft);
        return outcome;
    }
    *is_renamed = true;
    if (fstat(draft->fd, &stat) == 0) /* after the rename, which is a change; otherwise the file is read again */
        *identity = identity_of(&stat);
    const int outcome = fsync(files->directory) != 0 ? errno : 0;
    close_draft(draft);
    return outcome;
}

int layer_files_remove(const struct layer_files *files, const char *name)
{
    char file[FILE_NAME_MAX];
    if (!files->may_write)
        return EROFS;
    if (unlinkat(files->directory, file_name(name, file), 0) != 0 || fsync(files->directory) != 0)
        return errno;
    return 0;
}

/* Whether the entry was a temporary file of a writer that is gone, and is removed. */
static bool sweep_entry(int directory, const char *entry)
{
    if (!text_begins(entry, TEMPORARY))
        return false;
    const int fd = openat(directory, entry, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool is_removed = flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(directory, entry, 0) == 0;
    close(fd);
    return is_removed;
}

size_t layer_files_sweep(const struct layer_files *files)
{
    DIR *list = files->may_write ? file_list(files->directory) : NULL;
    const struct dirent *entry;
    size_t removed = 0;
    while (list != NULL && (entry = readdir(list)) != NULL)
        removed += sweep_entry(files->directory, entry->d_name);
    if (list != NULL)
        closedir(list);
    return removed;
}

/* ---- a thread that looks at files at regular times ---- */

static void *look_at_times(void *context)
{
    struct watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_ending) {
        const struct timespec next = clock_after_ms(watch->every_ms);
        if (pthread_cond_timedwait(&watch->ending, &watch->lock, &next) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&watch->lock);
        watch->look(watch->context);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

static void release(struct watch *watch)
{
    pthread_cond_destroy(&watch->ending);
    pthread_mutex_destroy(&watch->lock);
}

int watch_begin(struct watch *watch, unsigned every_ms, void (*look)(void *context), void *context)
{
    *watch = (struct watch){.every_ms = every_ms, .look = look, .context = context};
    if (every_ms == 0)
        return 0;
    clock_init_condition(&watch->ending);
    pthread_mutex_init(&watch->lock, NULL);
    const int outcome = pthread_create(&watch->thread, NULL, look_at_times, watch);
    watch->is_running = outcome == 0;
    if (outcome != 0)
        release(watch);
    return outcome;
}

void watch_end(struct watch *watch)
{
    if (!watch->is_running)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->is_ending = true;
    pthread_cond_signal(&watch->ending);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->is_running = false;
    release(watch);
}
