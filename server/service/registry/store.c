/* store.c: the table of named things in memory, by kind and name. */
#include "service/registry/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    thing_kind kind;
    char name[LAYER_NAME_MAX + 1];
    struct version *current;                   /* NULL: no file could be read yet */
    struct version *older[REGISTRY_OLDER_MAX]; /* newest first */
    size_t older_count;
    struct file_identity seen;
    char reason[REGISTRY_REASON_MAX];
    bool is_unloaded;
    struct registry_statistics statistics;
};

struct registry {
    size_t max_count, max_bytes, max_older;
    pthread_mutex_t change; /* held while names change */
    pthread_mutex_t lock;   /* guards what follows */
    struct entry **entries; /* in the order of their kinds, then of their names */
    size_t count, capacity;
    size_t of_kind[KIND_COUNT]; /* how many of the entries */
    size_t fixed;               /* of the layers, those that belong to models: they leave the room of others as it is */
    size_t bytes, older_bytes;  /* of present versions; of replaced versions; those that count */
    size_t file_bytes;          /* of present versions, without the copies of their headers */
    struct registry_statistics built_in;
};

/* ---- the table; the lock is held ---- */

struct registry *registry_create(size_t max_count, size_t max_bytes, size_t older)
{
    struct registry *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_count = max_count;
    store->max_bytes = max_bytes;
    store->max_older = older < REGISTRY_OLDER_MAX ? older : REGISTRY_OLDER_MAX;
    pthread_mutex_init(&store->change, NULL);
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* The index of the name, or the index at which it would be inserted. */
static size_t place_of(const struct registry *store, thing_kind kind, const char *name, bool *is_there)
{
    size_t low = 0, high = store->count;
    *is_there = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct entry *entry = store->entries[middle];
        const int order = entry->kind != kind ? (int)entry->kind - (int)kind : strcmp(entry->name, name);
        *is_there = *is_there || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find(const struct registry *store, thing_kind kind, const char *name)
{
    bool is_there;
    const size_t place = place_of(store, kind, name, &is_there);
    return is_there ? store->entries[place] : NULL;
}

static bool has_space(struct registry *store)
{
    enum { FIRST = 64 };
    if (store->count < store->capacity)
        return true;
    const size_t capacity = store->capacity == 0 ? FIRST : 2 * store->capacity;
    struct entry **entries = realloc(store->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    store->entries = entries;
    store->capacity = capacity;
    return true;
}

/* Returns NULL without memory. */
static struct entry *find_or_add(struct registry *store, thing_kind kind, const char *name)
{
    bool is_there;
    const size_t place = place_of(store, kind, name, &is_there);
    if (is_there)
        return store->entries[place];
    struct entry *entry = has_space(store) ? calloc(1, sizeof *entry) : NULL;
    if (entry == NULL)
        return NULL;
    entry->kind = kind;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    memmove(&store->entries[place + 1], &store->entries[place], (store->count - place) * sizeof(struct entry *));
    store->entries[place] = entry;
    store->count++;
    store->of_kind[kind]++;
    return entry;
}

static void drop_oldest(struct registry *store, struct entry *entry)
{
    struct version *oldest = entry->older[--entry->older_count];
    store->older_bytes -= oldest->kept_bytes;
    version_release(oldest);
}

/* Drops replaced versions until the present ones fit. */
static void drop_until_fits(struct registry *store)
{
    for (size_t i = 0; i < store->count && store->bytes + store->older_bytes > store->max_bytes; i++)
        while (store->entries[i]->older_count > 0 && store->bytes + store->older_bytes > store->max_bytes)
            drop_oldest(store, store->entries[i]);
}

static void push_older(struct registry *store, struct entry *entry, struct version *version)
{
    while (entry->older_count > 0 && entry->older_count >= store->max_older)
        drop_oldest(store, entry);
    if (store->max_older == 0) {
        version_release(version);
        return;
    }
    memmove(&entry->older[1], &entry->older[0], entry->older_count * sizeof entry->older[0]);
    entry->older[0] = version;
    entry->older_count++;
    store->older_bytes += version->kept_bytes;
}

static void count_in(struct registry *store, const struct version *version)
{
    store->bytes += version->kept_bytes;
    store->file_bytes += version->file_bytes;
    store->fixed += version->of->kind == KIND_LAYER && version->is_fixed;
}

static void count_out(struct registry *store, const struct version *version)
{
    store->bytes -= version->kept_bytes;
    store->file_bytes -= version->file_bytes;
    store->fixed -= version->of->kind == KIND_LAYER && version->is_fixed;
}

static void free_entry(struct registry *store, struct entry *entry)
{
    while (entry->older_count > 0)
        drop_oldest(store, entry);
    if (entry->current != NULL)
        count_out(store, entry->current);
    version_release(entry->current);
    free(entry);
}

static enum registry_state state_of(const struct entry *entry)
{
    return entry->is_unloaded         ? REGISTRY_UNLOADED
           : entry->current != NULL   ? REGISTRY_READY
           : entry->reason[0] != '\0' ? REGISTRY_BROKEN
                                      : REGISTRY_UNREAD;
}

static void fill_row(const struct entry *entry, struct registry_row *row)
{
    memset(row, 0, sizeof *row);
    row->kind = entry->kind;
    memcpy(row->name, entry->name, sizeof row->name);
    memcpy(row->reason, entry->reason, sizeof row->reason);
    row->seen = entry->seen;
    row->statistics = entry->statistics;
    row->is_fixed = entry->current != NULL && entry->current->is_fixed;
    row->state = state_of(entry);
    if (row->state == REGISTRY_READY)
        row->version = version_keep(entry->current);
}

/* ---- the table ---- */

void registry_begin_change(struct registry *store)
{
    pthread_mutex_lock(&store->change);
}

void registry_end_change(struct registry *store)
{
    pthread_mutex_unlock(&store->change);
}

void registry_destroy(struct registry *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->count; i++)
        free_entry(store, store->entries[i]);
    free(store->entries);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->change);
    free(store);
}

void registry_look(struct registry *store, thing_kind kind, const char *name, struct registry_row *row)
{
    pthread_mutex_lock(&store->lock);
    const struct entry *entry = find(store, kind, name);
    if (entry != NULL)
        fill_row(entry, row);
    pthread_mutex_unlock(&store->lock);
    if (entry == NULL) {
        memset(row, 0, sizeof *row);
        row->kind = kind;
        snprintf(row->name, sizeof row->name, "%s", name);
    }
}

struct version *registry_older(struct registry *store, const char *name, const char *wanted)
{
    struct version *found = NULL;
    char text[DIGEST_TEXT];
    pthread_mutex_lock(&store->lock);
    const struct entry *entry = find(store, KIND_LAYER, name);
    for (size_t i = 0; entry != NULL && !entry->is_unloaded && i < entry->older_count && found == NULL; i++)
        if (strcmp(entry->older[i]->of->known_name(entry->older[i], text), wanted) == 0)
            found = version_keep(entry->older[i]);
    pthread_mutex_unlock(&store->lock);
    return found;
}

size_t registry_digests(struct registry *store, const char *name, char digests[][DIGEST_TEXT], size_t max)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    const struct entry *entry = find(store, KIND_LAYER, name);
    if (entry != NULL && entry->current != NULL && count < max)
        (void)entry->current->of->known_name(entry->current, digests[count++]);
    for (size_t i = 0; entry != NULL && i < entry->older_count && count < max; i++)
        (void)entry->older[i]->of->known_name(entry->older[i], digests[count++]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

size_t registry_page(struct registry *store, thing_kind kind, const char *after, size_t limit,
                     struct registry_row *rows)
{
    bool is_there;
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    size_t place = place_of(store, kind, after, &is_there);
    for (place += is_there; place < store->count && store->entries[place]->kind == kind && count < limit; place++)
        fill_row(store->entries[place], &rows[count++]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

void registry_totals(struct registry *store, thing_kind kind, size_t *count, size_t *bytes)
{
    pthread_mutex_lock(&store->lock);
    *count = store->of_kind[kind];
    *bytes = store->file_bytes;
    pthread_mutex_unlock(&store->lock);
}

struct registry_room registry_room(struct registry *store)
{
    pthread_mutex_lock(&store->lock);
    const struct registry_room room = {store->of_kind[KIND_LAYER], store->max_count + store->fixed, store->bytes,
                                       store->max_bytes};
    pthread_mutex_unlock(&store->lock);
    return room;
}

void registry_states(struct registry *store, thing_kind kind, size_t counts[REGISTRY_STATES])
{
    memset(counts, 0, REGISTRY_STATES * sizeof *counts);
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->count; i++)
        counts[state_of(store->entries[i])] += store->entries[i]->kind == kind;
    pthread_mutex_unlock(&store->lock);
}

/* Whether somebody brought it: it is not the program's own, and no layer of a model. */
static bool is_brought(const struct entry *entry)
{
    return entry->kind == KIND_MODEL ? !is_own_model(text_span_of(entry->name))
                                     : entry->current == NULL || !entry->current->is_fixed;
}

bool registry_is_useless(struct registry *store, bool with_layers)
{
    bool is_any = false, is_used = false;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->count && !is_used; i++) {
        const struct entry *entry = store->entries[i];
        const enum registry_state state = state_of(entry);
        if (!is_brought(entry))
            continue;
        is_any = is_any || entry->kind == KIND_MODEL || with_layers;
        is_used = state == REGISTRY_READY || state == REGISTRY_UNLOADED ||
                  (state == REGISTRY_UNREAD && entry->kind == KIND_LAYER);
    }
    pthread_mutex_unlock(&store->lock);
    return is_any && !is_used;
}

bool registry_has_room(struct registry *store, const char *name, size_t bytes)
{
    pthread_mutex_lock(&store->lock);
    const struct entry *entry = find(store, KIND_LAYER, name);
    const size_t own = entry != NULL && entry->current != NULL ? entry->current->kept_bytes : 0;
    const size_t others = store->bytes - own;
    const bool has_room = (entry != NULL || store->of_kind[KIND_LAYER] - store->fixed < store->max_count) &&
                          others <= store->max_bytes && bytes <= store->max_bytes - others;
    pthread_mutex_unlock(&store->lock);
    return has_room;
}

bool registry_install(struct registry *store, struct version *version)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find_or_add(store, version->of->kind, version->name);
    if (entry != NULL) {
        if (entry->current != NULL) {
            count_out(store, entry->current);
            if (entry->current->is_fixed) /* the folder of its model has no older files */
                version_release(entry->current);
            else
                push_older(store, entry, entry->current);
        }
        entry->current = version;
        entry->seen = version->identity;
        entry->reason[0] = '\0';
        count_in(store, version);
        drop_until_fits(store);
    }
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

bool registry_note(struct registry *store, thing_kind kind, const char *name, const struct file_identity *seen,
                   const char *reason)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find_or_add(store, kind, name);
    if (entry != NULL) {
        entry->seen = *seen;
        snprintf(entry->reason, sizeof entry->reason, "%s", reason != NULL ? reason : "");
    }
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

/* A request that computes with the version learns it, too, whatever file has the name by then. */
static bool is_spoiled(struct version *version, const struct file_identity *file)
{
    if (file_identity_is_rewritten(&version->identity, file))
        atomic_store(&version->is_overwritten, true);
    return atomic_load(&version->is_overwritten);
}

void registry_forget(struct registry *store, thing_kind kind, const char *name, const struct file_identity *file)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find(store, kind, name);
    size_t left = 0;
    for (size_t i = 0; entry != NULL && i < entry->older_count; i++) {
        struct version *version = entry->older[i];
        if (!is_spoiled(version, file)) {
            entry->older[left++] = version;
            continue;
        }
        store->older_bytes -= version->kept_bytes;
        version_release(version);
    }
    if (entry != NULL)
        entry->older_count = left;
    if (entry != NULL && entry->current != NULL && is_spoiled(entry->current, file)) {
        count_out(store, entry->current);
        version_release(entry->current);
        entry->current = NULL;
    }
    pthread_mutex_unlock(&store->lock);
}

/* The lock is held. */
static void remove_at(struct registry *store, size_t place)
{
    store->of_kind[store->entries[place]->kind]--;
    free_entry(store, store->entries[place]);
    store->count--;
    memmove(&store->entries[place], &store->entries[place + 1], (store->count - place) * sizeof(struct entry *));
}

void registry_remove(struct registry *store, thing_kind kind, const char *name)
{
    bool is_there;
    pthread_mutex_lock(&store->lock);
    const size_t place = place_of(store, kind, name, &is_there);
    if (is_there)
        remove_at(store, place);
    pthread_mutex_unlock(&store->lock);
}

void registry_remove_fixed(struct registry *store, const char *name, const struct version *owner)
{
    bool is_there;
    pthread_mutex_lock(&store->lock);
    const size_t place = place_of(store, KIND_LAYER, name, &is_there);
    struct version *current = is_there ? store->entries[place]->current : NULL;
    if (current != NULL && current->owner == owner)
        remove_at(store, place);
    pthread_mutex_unlock(&store->lock);
}

bool registry_set_loaded(struct registry *store, const char *name, bool is_loaded)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find(store, KIND_LAYER, name);
    if (entry != NULL)
        entry->is_unloaded = !is_loaded;
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

static void add_statistics(struct registry_statistics *to, const struct registry_statistics *more)
{
    to->successes += more->successes;
    to->failures += more->failures;
    to->items += more->items;
    to->success_ms += more->success_ms;
    to->failure_ms += more->failure_ms;
    to->queue_ms += more->queue_ms;
    to->parse_ms += more->parse_ms;
    to->compute_ms += more->compute_ms;
    to->write_ms += more->write_ms;
    to->last_ms = more->last_ms;
}

void registry_count(struct registry *store, thing_kind kind, const char *name, const struct registry_statistics *more)
{
    pthread_mutex_lock(&store->lock);
    struct entry *entry = name != NULL ? find(store, kind, name) : NULL;
    if (entry != NULL)
        add_statistics(&entry->statistics, more);
    else if (name == NULL)
        add_statistics(&store->built_in, more);
    pthread_mutex_unlock(&store->lock);
}

size_t registry_used(struct registry *store, size_t limit, struct registry_use *uses)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->count && count < limit; i++) {
        const struct entry *entry = store->entries[i];
        if (entry->statistics.successes + entry->statistics.failures == 0)
            continue;
        memcpy(uses[count].name, entry->name, sizeof entry->name);
        uses[count++].statistics = entry->statistics;
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}

void registry_built_in(struct registry *store, struct registry_statistics *statistics)
{
    pthread_mutex_lock(&store->lock);
    *statistics = store->built_in;
    pthread_mutex_unlock(&store->lock);
}
