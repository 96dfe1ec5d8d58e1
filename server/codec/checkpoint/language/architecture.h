/*
 * architecture.h: data that says which tensors of a checkpoint are which part of a model (architectures.json). Private
 * to this folder.
 */
#ifndef CODEC_CHECKPOINT_LANGUAGE_ARCHITECTURE_H
#define CODEC_CHECKPOINT_LANGUAGE_ARCHITECTURE_H

#include "codec/bytes/chunks.h"
#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"

/* The table, its entry for a model_type, and what the table says of a model within a model. They live in an arena. */
struct architecture {
    json_t *table;
    json_t *entry;  /* NULL: the table has none */
    json_t *nested; /* NULL: the configuration describes one model alone; else it has "config", "within", "ignored" */
};

/*
 * The entry for the model_type of the configuration. A model of text and images keeps the configuration of each of its
 * parts in a member, such as text_config. The members of the part that attnd runs then replace the others of config.
 */
struct architecture architecture_open(json_t *config, attn_arena *arena);
void architecture_close(struct architecture *architecture);
/* ATTN_ERR_VALUE: the configuration names no kind of model. */
ATTN_MUST_CHECK bool architecture_check_type(const json_t *config, struct outcome *outcome);
/*
 * What a model_type is that attnd cannot run, such as "a mixture of experts"; *runs lists the types of that sort that it
 * runs. NULL: the table refuses no such type.
 */
const char *architecture_refused(const json_t *table, const char *model_type, const json_t **runs);
/*
 * Writes the model types whose entries have that member as a list in a sentence, as far as a message has room for them.
 * Types that only attnd writes are left out, and of "model" those that are refused. Before the list stands the type with the
 * nearest name, if one is near model_type or is misspelt by it: "the nearest name that attnd has is bert; ", and then the
 * text before.
 */
void architecture_write_types(const json_t *table, const char *member, const char *model_type, const char *before,
                              struct chunks *out);

/*
 * Copies the template, and replaces each choice by its case: {"$by": "tied|true", "true": …, "false": …, "otherwise":
 * …}. "$cases" names a table of cases that several choices share. A member whose case is null is left out. Expressions
 * have their values of layer n. *resolved is a new reference, also on a failure. ATTN_ERR_VALUE: the configuration asks
 * for a case that is not there.
 */
bool architecture_resolve(const struct architecture *architecture, const json_t *config, size_t n, json_t *template,
                          json_t **resolved, struct outcome *outcome);

/*
 * Adds those "defaults" of the entry that the configuration lacks. They are what transformers takes for an absent member.
 */
bool architecture_complete(const struct architecture *architecture, json_t *config, struct outcome *outcome);

/*
 * Checks the "requires" of the table and of the entry, which replaces members of the table's: {"member": value}, or a list
 * of values. A member that the
 * configuration has must have such a value. ATTN_ERR_VALUE with a sentence that names the member.
 */
bool architecture_check(const struct architecture *architecture, const json_t *config, struct outcome *outcome);

/*
 * Whether name ends in pattern. The pattern must begin at the start of name or behind a dot. "{…}" in the pattern fits
 * digits, and ".*" at its end any rest. *start is the offset of the pattern in name; *number is the first number that
 * fitted, or 0.
 */
bool architecture_fits(const char *name, const char *pattern, size_t *start, size_t *number);
/*
 * Whether the first length characters of name, the prefix of a module, have the part that "within" of nested names, such
 * as "language_model". True when nested names none.
 */
bool architecture_is_within(const struct architecture *architecture, const char *name, size_t length);

#endif
