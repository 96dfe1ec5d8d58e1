/* files.c: maps the files of a model's folder, and has those of the program's own models. */
#include "service/registry/model/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/embedded_file.h"
#include "base/process.h"
#include "codec/bytes/outcome.h"
#include "codec/gguf/gguf.h"
#include "codec/json/pieces.h"
#include "service/registry/model/folder.h"
#include "service/registry/version.h"

enum { SHARDS_MAX = 4096, BYTES_MAX = 1 << 30 /* of memory without a budget */ };

static const char CONFIG[] = MODEL_CONFIG, ONE_FILE[] = "model.safetensors", INDEX[] = "model.safetensors.index.json",
                  TOKENIZER[] = MODEL_FILES_TOKENIZER, MODULES[] = MODEL_FILES_MODULES, POOLING[] = MODEL_FILES_POOLING,
                  GENERATION[] = "generation_config.json", SUFFIX[] = ".safetensors", GGUF[] = ".gguf";

static bool fail_file(struct outcome *outcome, const char *name, int error)
{
    char text[128];
    return outcome_fail(outcome, error == ENOMEM ? ATTN_ERR_NO_MEMORY : ATTN_ERR_VALUE, NULL, "%.200s: %s", name,
                        file_reason(error, text, sizeof text));
}

attn_status model_files_name(attn_status status, const char *name, attn_error *err)
{
    char message[sizeof err->message];
    if (status == ATTN_OK)
        return ATTN_OK;
    snprintf(message, sizeof message, "%.100s: %.530s", name, err->message);
    return attn_fail(err, status, NULL, "%s", message);
}

/* ---- opening ---- */

/* Maps the file and lists it. files->files has room for it. Returns an errno. */
static int map(struct model_files *files, const char *name, struct model_file **mapped)
{
    struct model_file *file = &files->files[files->count];
    *file = (struct model_file){.name = name};
    const int outcome = file_map(files->directory, name, &file->bytes, &file->identity);
    files->is_written_to |= outcome == ETXTBSY;
    if (outcome != 0)
        return outcome;
    files->count++;
    files->bytes += file->bytes.size;
    *mapped = file;
    return 0;
}

/* The text of a file of JSON, without the byte order mark that some editors set before it. */
static struct text_span text_of(const struct model_file *file)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const size_t skipped = file->bytes.size >= 3 && memcmp(file->bytes.at, mark, 3) == 0 ? 3 : 0;
    return (struct text_span){file->bytes.at + skipped, file->bytes.size - skipped};
}

static bool check_text(const struct model_file *file, struct outcome *outcome)
{
    const struct text_span text = {file->bytes.at, file->bytes.size};
    return outcome_note(outcome, model_folder_check_text(file->name, text, outcome->err));
}

static bool make_room(struct model_files *files, size_t more, struct outcome *outcome)
{
    struct model_file *all = attn_arena_take_zeroed(files->arena, files->count + more, sizeof *all);
    if (all == NULL)
        return fail_file(outcome, CONFIG, ENOMEM);
    if (files->count > 0)
        memcpy(all, files->files, files->count * sizeof *all);
    files->files = all;
    return true;
}

/* Adds the tensors of a file to the list. The name and the shape of each are copied. False without memory. */
static bool copy_tensors(struct model_files *files, const struct safetensors *shard)
{
    struct checkpoint *checkpoint = &files->checkpoint;
    struct safetensors_tensor *all =
        attn_arena_take(files->arena, checkpoint->tensor_count + shard->tensor_count + 1, sizeof *all);
    if (all == NULL)
        return false;
    if (checkpoint->tensor_count > 0)
        memcpy(all, checkpoint->tensors, checkpoint->tensor_count * sizeof *all);
    checkpoint->tensors = all;
    for (size_t i = 0; i < shard->tensor_count; i++) {
        struct safetensors_tensor tensor = shard->tensors[i];
        size_t *shape = attn_arena_take(files->arena, tensor.rank + 1, sizeof *shape);
        tensor.name = attn_arena_copy_text(files->arena, tensor.name, strlen(tensor.name));
        if (shape == NULL || tensor.name == NULL)
            return false;
        if (tensor.rank > 0)
            memcpy(shape, tensor.shape, tensor.rank * sizeof *shape);
        tensor.shape = shape;
        all[checkpoint->tensor_count++] = tensor;
    }
    return true;
}

/* Lists the tensors of a file. Reading a header takes many times its bytes, which are given back at once. */
static bool add_tensors(struct model_files *files, const struct model_file *file, struct outcome *outcome)
{
    struct safetensors shard;
    attn_arena *scratch = attn_arena_create_beside(files->arena);
    if (scratch == NULL)
        return fail_file(outcome, file->name, ENOMEM);
    attn_status status = safetensors_read(file->bytes.at, file->bytes.size, scratch, &shard, outcome->err);
    if (status != ATTN_OK && shard.is_cut)
        status = model_folder_fail_cut(file->name, outcome->err);
    else
        status = model_files_name(status, file->name, outcome->err);
    if (outcome_note(outcome, status) && !copy_tensors(files, &shard))
        fail_file(outcome, file->name, ENOMEM);
    attn_arena_destroy(scratch);
    return !outcome_has_failed(outcome);
}

/* Lists the files that hold tensors. */
static bool name_shards(struct model_files *files, const char *const **names, size_t *count, struct outcome *outcome)
{
    static const char *const one[] = {ONE_FILE};
    struct model_file *index;
    *names = one;
    *count = 1;
    const int mapped = map(files, INDEX, &index);
    if (mapped != 0)
        return mapped == ENOENT || fail_file(outcome, INDEX, mapped);
    if (!check_text(index, outcome))
        return false;
    const attn_status status = checkpoint_read_index(text_of(index), files->arena, names, count, outcome->err);
    if (outcome_note(outcome, model_files_name(status, INDEX, outcome->err)) && *count > SHARDS_MAX)
        outcome_fail(outcome, ATTN_ERR_TOO_LARGE, NULL, "%s: the index names %zu files; at most %d are possible", INDEX,
                     *count, SHARDS_MAX);
    return !outcome_has_failed(outcome);
}

/* is_part: the index names the file. */
static bool open_shard(struct model_files *files, const char *name, bool is_part, struct outcome *outcome)
{
    struct model_file *shard;
    const int mapped = map(files, name, &shard);
    if (mapped == ENOENT && is_part)
        return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                            "%.200s: there is no such file, and %s names it as a part of the weights; download it too",
                            name, INDEX);
    if (mapped == ENOENT)
        return outcome_note(outcome,
                            model_folder_explain(files->directory, name, files->checkpoint.config, outcome->err));
    if (mapped != 0)
        return fail_file(outcome, name, mapped);
    return check_text(shard, outcome) && add_tensors(files, shard, outcome);
}

static bool open_shards(struct model_files *files, struct outcome *outcome)
{
    const char *const *names = NULL;
    size_t count = 0;
    bool is_well = name_shards(files, &names, &count, outcome) && make_room(files, count, outcome);
    for (size_t i = 0; i < count && is_well; i++)
        is_well = open_shard(files, names[i], names[0] != ONE_FILE, outcome);
    return is_well;
}

/* Reading ends when the server is to stop. */
static bool is_to_stop(void *context)
{
    (void)context;
    return signals_ask_to_stop();
}

static bool begin(struct model_files *files, attn_budget *budget, int directory, struct outcome *outcome)
{
    enum {
        OTHERS = 7
    }; /* config.json, the index, tokenizer.json, two of the pooling, generation_config.json, tensors */
    *files = (struct model_files){.directory = directory,
                                  .tokenizer_name = TOKENIZER,
                                  .arena = attn_arena_create_within(budget, budget != NULL ? SIZE_MAX : BYTES_MAX)};
    outcome->arena = files->arena;
    if (files->arena == NULL)
        return fail_file(outcome, CONFIG, ENOMEM);
    attn_arena_watch(files->arena, is_to_stop, NULL);
    return make_room(files, OTHERS, outcome);
}

/* A small file that a folder need not have: one that cannot be read counts as absent. */
static bool map_text(struct model_files *files, const char *name, struct text_span *text, struct outcome *outcome)
{
    struct model_file *file;
    const int mapped = map(files, name, &file);
    if (mapped == 0)
        *text = text_of(file);
    return (mapped != ETXTBSY && mapped != ENOMEM) || fail_file(outcome, name, mapped);
}

/* ---- one GGUF file ---- */

/* The folder of the file at path; -1: errno says why. */
static int open_parent(const char *path, const char *name)
{
    char parent[4096];
    const size_t length = (size_t)(name - path);
    if (length >= sizeof parent) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(parent, sizeof parent, "%.*s", (int)length, path);
    return open(length > 0 ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A tokenizer that cannot be used is no failure: there is a reason then. */
static bool make_tokenizer(struct model_files *files, const struct gguf *gguf, attn_arena *scratch,
                           struct outcome *outcome)
{
    attn_error why = {.status = ATTN_OK};
    files->tokenizer_outcome = ENOENT;
    files->texts = attn_arena_create_beside(files->arena);
    if (files->texts == NULL)
        return outcome_no_memory(outcome);
    const attn_status status = gguf_tokenizer(gguf, files->texts, scratch, &files->tokenizer, &why);
    if (status != ATTN_OK)
        files->tokenizer_failure = outcome_copy_text(outcome, why.message, strlen(why.message));
    return status == ATTN_ERR_NO_MEMORY ? outcome_no_memory(outcome) : !outcome_has_failed(outcome);
}

static bool read_gguf(struct model_files *files, const struct model_file *file, attn_arena *scratch, bool *is_cut,
                      struct outcome *outcome)
{
    const size_t processors = machine_processors();
    const attn_pool_options options = {
        .threads = processors < ATTN_POOL_THREADS_MAX ? processors : ATTN_POOL_THREADS_MAX, .caller_works = true};
    struct gguf gguf;
    const bool is_read =
        outcome_note(outcome, gguf_read(file->bytes.at, file->bytes.size, scratch, &gguf, outcome->err));
    *is_cut = gguf.is_cut;
    if (!is_read)
        return false;
    attn_pool *pool = attn_pool_create(&options, NULL); /* until the file is read */
    const attn_runtime runtime = pool != NULL ? attn_pool_runtime(pool, NULL) : attn_runtime_serial(NULL);
    outcome_note(outcome,
                 gguf_describe(&gguf, file->bytes.mapping, &runtime, files->arena, &files->checkpoint, outcome->err));
    attn_pool_destroy(pool);
    return !outcome_has_failed(outcome) && make_tokenizer(files, &gguf, scratch, outcome);
}

static bool open_gguf(struct model_files *files, attn_budget *budget, const char *path, struct outcome *outcome)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    struct model_file *file;
    if (!begin(files, budget, open_parent(path, name), outcome))
        return false;
    if (files->directory < 0)
        return fail_file(outcome, path, errno);
    name = attn_arena_copy_text(files->arena, name, strlen(name));
    attn_arena *scratch = name != NULL ? attn_arena_create_beside(files->arena) : NULL;
    if (scratch == NULL)
        return fail_file(outcome, path, ENOMEM);
    files->tokenizer_name = name;
    const int mapped = map(files, name, &file);
    bool is_cut = false;
    if (mapped != 0)
        fail_file(outcome, name, mapped);
    else if (check_text(file, outcome) && !read_gguf(files, file, scratch, &is_cut, outcome))
        outcome->status =
            is_cut ? model_folder_fail_cut(name, outcome->err) : model_files_name(outcome->status, name, outcome->err);
    attn_arena_destroy(scratch);
    return !outcome_has_failed(outcome);
}

/* ---- a folder ---- */

/*
 * Python writes NaN and Infinity into JSON, which has no such numbers. They become strings, so that a member that is not
 * read does not matter, and one that is read is refused by its name.
 */
static bool set_config(struct model_files *files, const struct model_file *file, struct outcome *outcome)
{
    enum { QUOTED_MAX = 1 << 26 }; /* a configuration is shorter; a longer text is refused before its end is read */
    struct text_span *config = &files->checkpoint.config;
    *config = text_of(file);
    if (!check_text(file, outcome))
        return false;
    return config->length > QUOTED_MAX || json_text_quote_numbers(*config, files->arena, config) ||
           fail_file(outcome, CONFIG, ENOMEM);
}

static bool open_config(struct model_files *files, struct outcome *outcome)
{
    struct model_file *file;
    const int mapped = map(files, CONFIG, &file);
    if (mapped == ENOENT)
        return outcome_note(outcome,
                            model_folder_explain(files->directory, CONFIG, files->checkpoint.config, outcome->err));
    return mapped == 0 ? set_config(files, file, outcome) : fail_file(outcome, CONFIG, mapped);
}

/*
 * Maps the files of a slow tokenizer: of each kind the first that is there. Fewer kinds than names exist, so there is room
 * for the index behind them.
 */
static bool map_slow(struct model_files *files, struct outcome *outcome)
{
    bool is_well = make_room(files, slow_name_count, outcome);
    files->slow.config = files->checkpoint.config;
    for (size_t i = 0; i < slow_name_count && is_well; i++) {
        struct slow_file_text *slow = &files->slow.files[slow_names[i].file];
        struct model_file *file;
        const int mapped = slow->name == NULL ? map(files, slow_names[i].name, &file) : ENOENT;
        if (mapped == 0)
            *slow = (struct slow_file_text){text_of(file), file->name};
        else if (mapped != ENOENT)
            is_well = fail_file(outcome, slow_names[i].name, mapped);
    }
    return is_well;
}

static bool open_tokenizer(struct model_files *files, struct outcome *outcome)
{
    struct model_file *file;
    files->tokenizer_outcome = map(files, TOKENIZER, &file);
    if (files->tokenizer_outcome == ETXTBSY)
        return fail_file(outcome, TOKENIZER, ETXTBSY);
    if (files->tokenizer_outcome == 0)
        files->tokenizer = text_of(file);
    if (files->tokenizer_outcome != 0 || file->bytes.size > 0)
        return true;
    attn_error why = {.status = ATTN_OK};
    files->tokenizer_outcome = ENODATA;
    if (model_folder_check_text(TOKENIZER, files->tokenizer, &why) != ATTN_OK)
        files->tokenizer_failure = outcome_copy_text(outcome, why.message, strlen(why.message));
    return !outcome_has_failed(outcome);
}

static bool open_folder(struct model_files *files, attn_budget *budget, const char *path, struct outcome *outcome)
{
    if (!begin(files, budget, model_folder_open(path), outcome))
        return false;
    if (files->directory < 0)
        return fail_file(outcome, path, errno);
    return open_config(files, outcome) && open_tokenizer(files, outcome) &&
           map_text(files, MODULES, &files->modules, outcome) && map_text(files, POOLING, &files->pooling, outcome) &&
           map_text(files, GENERATION, &files->generation, outcome) &&
           (files->tokenizer_outcome != ENOENT || map_slow(files, outcome)) && open_shards(files, outcome);
}

attn_status model_files_open(struct model_files *files, attn_budget *budget, const char *path, attn_error *err)
{
    struct outcome outcome = {.err = err};
    struct file_identity ignored;
    (void)(file_look(AT_FDCWD, path, &ignored) == 0 ? open_gguf : open_folder)(files, budget, path, &outcome);
    return outcome.status;
}

#define OWN_FILES(name)                                                                                                \
    EMBEDDED_FILE(name##_config, "examples/train_" #name "/model/config.json");                                        \
    EMBEDDED_FILE(name##_tensors, "examples/train_" #name "/model/model.safetensors");                                 \
    EMBEDDED_FILE(name##_tokenizer, "examples/train_" #name "/model/tokenizer.json");
#define OWN_MODEL(name)                                                                                                \
    {#name,                                                                                                            \
     name##_config_begin,                                                                                              \
     name##_config_end,                                                                                                \
     name##_tensors_begin,                                                                                             \
     name##_tensors_end,                                                                                               \
     name##_tokenizer_begin,                                                                                           \
     name##_tokenizer_end},

OWN_MODELS(OWN_FILES)

static const struct own_model {
    const char *name, *config, *config_end, *tensors, *tensors_end, *tokenizer, *tokenizer_end;
} own_models[] = {OWN_MODELS(OWN_MODEL)};

attn_status own_model_open(struct model_files *files, attn_budget *budget, const char *name, attn_error *err)
{
    const struct own_model *own = own_models;
    while (strcmp(own->name, name) != 0)
        own++;
    const size_t config = (size_t)(own->config_end - own->config), tensors = (size_t)(own->tensors_end - own->tensors),
                 tokenizer = (size_t)(own->tokenizer_end - own->tokenizer);
    struct outcome outcome = {.err = err};
    const bool is_begun = begin(files, budget, -1, &outcome);
    const struct model_file file = {.name = ONE_FILE, .bytes = {.at = own->tensors, .size = tensors}};
    files->checkpoint = (struct checkpoint){.config = {own->config, config}};
    files->tokenizer = (struct text_span){own->tokenizer, tokenizer};
    files->bytes = config + tensors + tokenizer;
    (void)(is_begun && add_tensors(files, &file, &outcome));
    return outcome.status;
}

void model_files_rest(struct model_files *files)
{
    attn_arena_destroy(files->texts);
    files->texts = NULL;
    files->tokenizer = (struct text_span){NULL, 0};
    if (files->arena != NULL)
        attn_arena_watch(files->arena, NULL, NULL);
    for (size_t i = 0; i < files->count; i++) {
        const struct file_bytes *bytes = &files->files[i].bytes;
        if (bytes->mapping != NULL)
            mapping_rest(bytes->mapping, bytes->at, bytes->size);
    }
}

void model_files_close(struct model_files *files)
{
    model_files_rest(files);
    for (size_t i = 0; i < files->count; i++)
        file_bytes_release(&files->files[i].bytes);
    if (files->arena != NULL)
        attn_arena_destroy(files->arena);
    if (files->directory >= 0)
        close(files->directory);
    *files = (struct model_files){.directory = -1};
}

/* ---- changes ---- */

bool model_files_are_overwritten(const struct model_files *files)
{
    bool are = false;
    for (size_t i = 0; i < files->count && !are; i++) {
        const struct model_file *file = &files->files[i];
        struct file_identity now;
        are = file_bytes_are_torn(&file->bytes) ||
              (file_look(files->directory, file->name, &now) == 0 && file_identity_is_rewritten(&file->identity, &now));
    }
    return are;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}

static uint64_t stamp_file(const char *name, const struct file_identity *identity)
{
    uint64_t sum = 1;
    for (; *name != '\0'; name++)
        sum = mix(sum, (unsigned char)*name);
    sum = mix(mix(sum, (uint64_t)identity->device), (uint64_t)identity->inode);
    return mix(mix(mix(sum, (uint64_t)identity->bytes), (uint64_t)identity->modified_ns),
               (uint64_t)identity->changed_ns);
}

/* Whether a file of that name belongs to a model. */
static bool is_of_model(const char *name)
{
    static const char *const names[] = {CONFIG, INDEX, TOKENIZER, MODULES, GENERATION};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < slow_name_count; i++)
        if (strcmp(name, slow_names[i].name) == 0)
            return true;
    return text_ends(name, SUFFIX);
}

uint64_t model_files_stamp(const char *path)
{
    const int folder = model_folder_open(path);
    DIR *directory = folder >= 0 ? fdopendir(folder) : NULL;
    const struct dirent *entry;
    struct file_identity identity;
    uint64_t sum = 0;
    if (directory == NULL && folder >= 0)
        close(folder);
    if (directory == NULL)
        return file_look(AT_FDCWD, path, &identity) == 0 ? stamp_file(path, &identity) | 1 : 0;
    const bool has_model = model_folder_has_model(folder);
    while (has_model && (entry = readdir(directory)) != NULL)
        if (is_of_model(entry->d_name) && file_look(dirfd(directory), entry->d_name, &identity) == 0)
            sum += stamp_file(entry->d_name, &identity); /* a sum: the order of entries does not count */
    if (has_model && file_look(dirfd(directory), POOLING, &identity) == 0)
        sum += stamp_file(POOLING, &identity);
    closedir(directory);
    return has_model ? sum | 1 : 0;
}

size_t model_files_name_length(const char *parent_and_name, const char *name)
{
    const size_t length = strlen(name), end = sizeof GGUF - 1;
    struct file_identity ignored;
    if (file_look(AT_FDCWD, parent_and_name, &ignored) != 0)
        return length;
    return length > end && text_ends(name, GGUF) ? length - end : 0;
}
