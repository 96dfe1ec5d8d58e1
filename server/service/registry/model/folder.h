/*
 * folder.h: which folder has a model's files, and what a person can do when it has others.
 */
#ifndef SERVICE_REGISTRY_MODEL_FOLDER_H
#define SERVICE_REGISTRY_MODEL_FOLDER_H

#include "attn/status.h"
#include "base/text.h"

#define MODEL_CONFIG "config.json"

/*
 * Opens the folder that has the files: path itself, or the snapshot of a folder of the hub's cache
 * (models--NAME/snapshots/REVISION): the one that refs/main names, else the only one. Returns the descriptor, or -1 with
 * errno set. The caller closes it.
 */
int model_folder_open(const char *path);

/* Whether the folder has files of a model, also of a form that attnd does not read. */
bool model_folder_has_model(int folder);

/*
 * Why a file of the model is absent from the folder: names what is there instead, and the command that helps. config is
 * the text of config.json; at NULL: it is the file that is absent. Returns ATTN_ERR_VALUE.
 */
attn_status model_folder_explain(int folder, const char *absent, struct text_span config, attn_error *err);

/*
 * Refuses a text that stands in place of a file: nothing, a pointer of Git LFS, an archive or a web page. ATTN_OK: it is
 * none of them.
 */
ATTN_MUST_CHECK attn_status model_folder_check_text(const char *name, struct text_span text, attn_error *err);

/* Says that a file was not downloaded to its end, and how to get it; err has the reader's reason. Returns ATTN_ERR_SYNTAX. */
attn_status model_folder_fail_cut(const char *name, attn_error *err);

#endif
