/*
 * files.h: the files of a model's folder, mapped: config.json, model.safetensors or the files that
 * model.safetensors.index.json names, and tokenizer.json or the files of a slow tokenizer, as transformers writes them;
 * modules.json and 1_Pooling/config.json, as sentence-transformers writes them. Or one GGUF file, of
 * which those are made (codec/gguf/gguf.h).
 *
 * Files are mapped and take only address space until a computation reads them. Replace a file by renaming another over
 * it. A file may be written to in place, or truncated, while it is read (service/registry/files.h).
 */
#ifndef SERVICE_REGISTRY_MODEL_FILES_H
#define SERVICE_REGISTRY_MODEL_FILES_H

#include "codec/checkpoint/find.h"
#include "codec/tokenizer/slow/slow.h"
#include "service/registry/files.h"

#define MODEL_FILES_TOKENIZER "tokenizer.json"
#define MODEL_FILES_MODULES   "modules.json"
#define MODEL_FILES_POOLING   "1_Pooling/config.json"

/* One file, and its state when it was mapped. */
struct model_file {
    const char *name;
    struct file_bytes bytes;
    struct file_identity identity; /* all zero: the bytes are no file's */
};

struct model_files {
    int directory;            /* -1: there is none */
    struct model_file *files; /* those that exist; config.json is the first */
    size_t count;
    attn_arena *arena; /* the tables of tensors; what describes the model goes there, too */
    struct checkpoint checkpoint;
    struct text_span tokenizer;        /* at NULL: there is none that can be read */
    struct slow_files slow;            /* what stands in place of tokenizer.json when there is none */
    int tokenizer_outcome;             /* the errno with which it was mapped; ENOENT: there is none */
    const char *tokenizer_name;        /* for messages: "tokenizer.json" */
    const char *tokenizer_failure;     /* why a GGUF file has none that can be used; NULL: no such reason */
    attn_arena *texts;                 /* the tokenizer of a GGUF file; NULL: the text is a file's */
    struct text_span modules, pooling; /* of sentence-transformers; at NULL: there are none */
    struct text_span generation;       /* generation_config.json; at NULL: there is none */
    size_t bytes;                      /* of all files together */
    bool is_written_to;                /* a program writes to a file, so opening fails: try again */
};

/*
 * Opens the folder or the GGUF file at path. All memory for the model is taken from the budget; NULL: there is none. Call
 * model_files_close whatever the outcome.
 *   ATTN_ERR_VALUE      a file cannot be read; ATTN_ERR_SYNTAX: it is damaged
 *   ATTN_ERR_TOO_LARGE  the index names too many files
 *   ATTN_ERR_NO_MEMORY
 * The message is a sentence that begins with the name of the file.
 */
ATTN_MUST_CHECK attn_status model_files_open(struct model_files *files, attn_budget *budget, const char *path,
                                             attn_error *err);
/* The same for a model of own_model_name, which is part of the program, so that a first start without any setting has some. */
ATTN_MUST_CHECK attn_status own_model_open(struct model_files *files, attn_budget *budget, const char *name,
                                           attn_error *err);
void model_files_close(struct model_files *files);
/* Gives back the memory that only reading takes: the text of the tokenizer, and the pages of the files. */
void model_files_rest(struct model_files *files);

/* Whether a mapped file was written to in place since it was mapped, or could not be read. One fstatat per file. */
bool model_files_are_overwritten(const struct model_files *files);
/*
 * A number for the present state of the folder's files, which differs after every change. 0: it has no model.
 * Of a file, one for its state.
 */
uint64_t model_files_stamp(const char *path);
/*
 * The length of the name that a model has by that of its file or folder in the folder of all models: GGUF files without
 * their suffix. 0: other files, which are no models.
 */
size_t model_files_name_length(const char *parent_and_name, const char *name);

/* Puts the name of a file before the message of a failure. Returns status. */
attn_status model_files_name(attn_status status, const char *name, attn_error *err);

#endif
