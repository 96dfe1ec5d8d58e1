/* folder.c: finds the folder of a model's files, and tells apart the forms of models that attnd does not read. */
#include "service/registry/model/folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "codec/json/pieces.h"
#include "service/registry/files.h"

enum { NAME_BYTES = 256, REVISION_MAX = 64, CLASS_MAX = 80, CLASS_PLACES = 2 /* in the words of a form */ };

/* ---- the hub's cache ---- */

static bool has_file(int folder, const char *name)
{
    struct stat status;
    return fstatat(folder, name, &status, 0) == 0;
}

/* Reads refs/main, which has the name of a folder in snapshots. */
static bool read_revision(int folder, char revision[REVISION_MAX + 1])
{
    const int fd = openat(folder, "refs/main", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, revision, REVISION_MAX) : -1;
    if (fd >= 0)
        close(fd);
    size_t end = length > 0 ? (size_t)length : 0;
    while (end > 0 && isspace((unsigned char)revision[end - 1]))
        end--;
    revision[end] = '\0';
    return text_is_name(revision, end, REVISION_MAX) && revision[0] != '.';
}

/* The name of the only folder in snapshots. False: there is none, or there are several. */
static bool find_only(int snapshots, char name[REVISION_MAX + 1])
{
    DIR *directory = file_list(snapshots);
    const struct dirent *entry;
    size_t count = 0;
    if (directory == NULL)
        return false;
    while ((entry = readdir(directory)) != NULL) {
        const size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length > REVISION_MAX)
            continue;
        memcpy(name, entry->d_name, length + 1);
        count++;
    }
    closedir(directory);
    return count == 1;
}

static int open_snapshot(int folder)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
    char revision[REVISION_MAX + 1];
    const int snapshots = openat(folder, "snapshots", FLAGS);
    int found = -1;
    if (snapshots < 0)
        return -1;
    if (read_revision(folder, revision) || find_only(snapshots, revision))
        found = openat(snapshots, revision, FLAGS);
    close(snapshots);
    return found;
}

int model_folder_open(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int snapshot = folder >= 0 && !has_file(folder, MODEL_CONFIG) ? open_snapshot(folder) : -1;
    if (snapshot < 0)
        return folder;
    close(folder);
    return snapshot;
}

/* ---- other forms ---- */

#define OF_PYTORCH                                                                                                      \
    "the weights are in PyTorch's format, which attnd does not read; convert them in Python: from transformers import " \
    "$CLASS; $CLASS.from_pretrained(\"DIR\").save_pretrained(\"NEW\")"
#define OF_ONNX                                                                                                        \
    "an ONNX graph is not read; take config.json and model.safetensors of the model that it was made from, or write "  \
    "them in Python: from transformers import $CLASS; $CLASS.from_pretrained(\"MODEL\").save_pretrained(\"NEW\")"

/*
 * What may be in a folder in place of the files of transformers. $CLASS in the words stands for the class of config.json,
 * and NAME for the file's name. The first row that fits an entry of the folder is told.
 */
static const struct form {
    const char *begin, *end; /* of the name */
    bool is_model;           /* a folder with it is listed, even without config.json */
    const char *words;
} forms[] = {
    {"model.safetensors", "", false, "download config.json of the same model, too"},
    {"model.safetensors.index.json", "", false, "download config.json of the same model, too"},
    {"adapter_config.json", "", true,
     "it is an adapter, which changes another model and is none alone; merge both in Python: from peft import "
     "AutoPeftModelForCausalLM as M; M.from_pretrained(\"DIR\").merge_and_unload().save_pretrained(\"NEW\")"},
    {"", ".gguf", true, "a GGUF file is not read inside a folder; give the file itself: --model NAME=DIR/FILE"},
    {"pytorch_model", ".index.json", true, OF_PYTORCH},
    {"pytorch_model", ".bin", true, OF_PYTORCH},
    {"tf_model", ".h5", true,
     "the weights are in TensorFlow's format, which attnd does not read; convert them in Python: from transformers "
     "import $CLASS; $CLASS.from_pretrained(\"DIR\", from_tf=True).save_pretrained(\"NEW\")"},
    {"flax_model", ".msgpack", true,
     "the weights are in Flax's format, which attnd does not read; convert them in Python: from transformers import "
     "$CLASS; $CLASS.from_pretrained(\"DIR\", from_flax=True).save_pretrained(\"NEW\")"},
    {"model.bin", "", true,
     "the weights are in the format of CTranslate2, which attnd does not read; take config.json and model.safetensors of "
     "the model that they were made from"},
    {"consolidated.", "", true,
     "the weights are in the format of the model's authors; take the files of transformers instead (config.json and "
     "model.safetensors of the same model), or convert them with the script convert_…_weights_to_hf.py of transformers"},
    {"", ".onnx", true, OF_ONNX},
    {"onnx", "", false, OF_ONNX},
    {"model_index.json", "", false,
     "the folder is a pipeline of several models; give the folder of one of them, as DIR/text_encoder"},
    {"model-0", ".safetensors", false,
     "it is one part of the weights, and model.safetensors.index.json, which lists the parts, is absent; download it too"},
    {"", ".safetensors", false, "attnd reads the weights under the name model.safetensors; rename the file"},
    {"model.ckpt", "", false,
     "the weights are in TensorFlow's old format, which attnd does not read; take model.safetensors of the same model"},
    {"snapshots", "", false,
     "refs/main names no folder in it; give the folder of one revision: --model NAME=DIR/snapshots/REVISION"},
};

static bool fits(const struct form *form, const char *name)
{
    const size_t begin = strlen(form->begin), end = strlen(form->end);
    if (strlen(name) < begin + end || !text_begins(name, form->begin) || !text_ends(name, form->end))
        return false;
    return end > 0 || strcmp(name, form->begin) == 0 || form->begin[begin - 1] == '.';
}

/* The first row that fits, with the first name in the alphabet. NULL: none does. */
static const struct form *find_form(int folder, char found[NAME_BYTES])
{
    DIR *directory = file_list(folder);
    const struct dirent *entry;
    size_t best = ARRAY_LENGTH(forms);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        size_t i = 0;
        while (i < best && !fits(&forms[i], entry->d_name))
            i++;
        if (i < best || (i < ARRAY_LENGTH(forms) && fits(&forms[i], entry->d_name) && strcmp(entry->d_name, found) < 0))
            text_copy(found, NAME_BYTES, entry->d_name);
        best = i < best ? i : best;
    }
    if (directory != NULL)
        closedir(directory);
    return best < ARRAY_LENGTH(forms) ? &forms[best] : NULL;
}

bool model_folder_has_model(int folder)
{
    char name[NAME_BYTES];
    if (has_file(folder, MODEL_CONFIG))
        return true;
    const struct form *form = find_form(folder, name);
    return form != NULL && form->is_model;
}

/* The first of the architectures; AutoModel when config.json has none. */
static void find_class(struct text_span config, char class[CLASS_MAX])
{
    static const char *const names[] = {"architectures"};
    struct json_collection found;
    json_text_find(config, names, 1, &found);
    const struct text_span list = found.text;
    const char *begin = list.at != NULL ? memchr(list.at, '"', list.length) : NULL;
    const char *end = begin != NULL ? memchr(begin + 1, '"', (size_t)(list.at + list.length - begin - 1)) : NULL;
    const size_t length = end != NULL ? (size_t)(end - begin - 1) : 0;
    text_copy(class, CLASS_MAX, "AutoModel");
    if (text_is_name(begin != NULL ? begin + 1 : "", length, CLASS_MAX - 1))
        snprintf(class, CLASS_MAX, "%.*s", (int)length, begin + 1);
}

attn_status model_folder_explain(int folder, const char *absent, struct text_span config, attn_error *err)
{
    char found[NAME_BYTES], class[CLASS_MAX], words[480];
    const struct form *form = find_form(folder, found);
    if (form == NULL)
        return attn_fail(err, ATTN_ERR_VALUE, NULL,
                         "%.100s: there is no such file; the folder of a model has config.json and model.safetensors: "
                         "docs/models.md shows the two lines of Python that write them",
                         absent);
    if (strcmp(found, absent) == 0)
        return attn_fail(err, ATTN_ERR_VALUE, NULL, "%.100s: it is no file, but a folder, a device or a broken link",
                         absent);
    find_class(config, class);
    text_copy(words, sizeof words, form->words);
    for (size_t i = 0; i < CLASS_PLACES; i++) /* a class has no $ in its name */
        text_replace(words, sizeof words, "$CLASS", class);
    return attn_fail(err, ATTN_ERR_VALUE, NULL, "there is %.60s, and no %.60s: %s", found, absent, words);
}

/* ---- texts in place of files ---- */

/* Ignores the case of ASCII letters. */
static bool begins(struct text_span text, const char *with)
{
    const size_t length = strlen(with);
    return text.length >= length && text_equal_fold((struct text_span){text.at, length}, with);
}

#define AGAIN "download it again: hf download ORG/NAME %.100s --force-download"

/* What a file begins with that is another one in its place, and the words for it. */
static const struct {
    const char *begin, *words;
} others[] = {
    {"version https://git-lfs", "it is a pointer of Git LFS and not the file; run git lfs pull in the folder"},
    {"\x1f\x8b",
     "it is packed with gzip and not the file itself; unpack it with gunzip, or tar -xzf if it holds several files"},
    {"PK\x03\x04",
     "it is a ZIP archive and not the file itself; unpack it with unzip, or call it pytorch_model.bin if it is "
     "PyTorch's, whose format is such an archive"},
};

attn_status model_folder_check_text(const char *name, struct text_span text, attn_error *err)
{
    if (text.length == 0)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%.100s: the file is empty; " AGAIN, name, name);
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (begins(text, others[i].begin))
            return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%.100s: %s", name, others[i].words);
    while (text.length > 0 && isspace((unsigned char)*text.at))
        text = (struct text_span){text.at + 1, text.length - 1};
    if (begins(text, "<!doctype") || begins(text, "<html"))
        return attn_fail(
            err, ATTN_ERR_SYNTAX, NULL,
            "%.100s: it is a web page (HTML) and not the file; download the file itself, and log in if the "
            "page asks for it",
            name);
    return ATTN_OK;
}

attn_status model_folder_fail_cut(const char *name, attn_error *err)
{
    char why[300];
    text_copy(why, sizeof why, err->message);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%.100s: the download is incomplete (%s); " AGAIN, name, why, name);
}
