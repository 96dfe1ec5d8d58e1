/*
 * node.h: decodes members of a request's JSON objects by tables: name -> function. Private to the decoders of requests:
 * no header that others include mentions json_t.
 *
 * Decode functions return ATTN_OK, or record the reason of the failure with the pointer of the value ("/masks/window").
 * The reading remembers its first failure, and all functions here that fail or decode do nothing afterwards: a decoder
 * calls one after the other, and returns reading->status.
 */
#ifndef CODEC_JSON_NODE_H
#define CODEC_JSON_NODE_H

#include <jansson.h>
#include <stdint.h>

#include "codec/json/habit.h"
#include "codec/json/skim.h"

struct member;

/* A section of a request and the members it may have. */
struct member_table {
    const char *section;
    const struct member *members;
    size_t count;
};

/*
 * Why a request cannot have the member of that path ("weights.query"): "the kept layer has", to stand behind "which".
 * NULL: it can, as far as the function knows.
 */
typedef const char *lacking_function(const char *path);

/* What decode functions need to read one document. A larger struct of the caller may begin with it (decoder.h). */
struct reading {
    attn_arena *arena;
    const struct skim *skim;
    const struct member_table *const *sections; /* the sections where an unknown member may belong; ends with NULL */
    unsigned scopes;                            /* bit 1 << scope for each scope whose members may be given */
    /* By scope: "belongs to …", for a member whose scope is not among scopes. NULL: such a member is an unknown one. */
    const char *const *elsewhere;
    const struct foreign_word *foreign; /* ends with a row without words; NULL: none are known */
    lacking_function *lacking;          /* NULL: all sections are here */
    const char *silent;                 /* a member of the root whose strings no message repeats; NULL: none */
    attn_error *err;
    attn_status status; /* of the first failure. From then on nothing is decoded, and no other failure is recorded */
};

static inline bool node_has_failed(const struct reading *reading)
{
    return reading->status != ATTN_OK;
}

/* Notes the outcome of a function that has filled reading->err itself. Returns the first failure. */
static inline attn_status node_note(struct reading *reading, attn_status status)
{
    reading->status = node_has_failed(reading) ? reading->status : status;
    return reading->status;
}

/* A value of the request, and the path to it from the root. */
struct node {
    const struct node *parent; /* NULL: the root */
    const char *name;          /* the name of the member; NULL: an element of an array */
    size_t index;              /* the index of the element */
    json_t *json;
    bool is_spelt; /* the request has a short form: the pointer of its one member is that of the node */
    bool is_plain; /* within a list that node_decode_list parsed, or a file: no markers, [n] is a list of one number */
};

/* Decodes node into *to. The comment of each function gives the type of *to. */
typedef attn_status decode_function(struct reading *reading, const struct node *node, void *to);

enum { MEMBER_ALWAYS = 0 };

struct member {
    const char *name;
    decode_function *decode;
    size_t offset;  /* offset of the value's member in the decoded struct */
    unsigned scope; /* MEMBER_ALWAYS, or a number whose meaning the caller defines */
};

/* Whether the table has a member of that name, of any scope. */
bool member_table_has(const struct member_table *table, const char *name);

/*
 * Decodes an object. Every member that it has must be in the table. The members are decoded in the order of the table,
 * each to (char *)to + offset. A member that is null counts as not given.
 */
attn_status node_decode_members(struct reading *reading, const struct node *node, const struct member *members,
                                size_t count, void *to);

/* Checks that every member of the object is in the table, and decodes nothing. */
attn_status node_check_members(struct reading *reading, const struct node *node, const struct member *members,
                               size_t count);

/* The member of an object. NULL when the object has no such member, or when it is null, which means "not given". */
json_t *node_find(const json_t *object, const char *name);
/* Takes all nulls out of an object of several forms: clients write null for the members of the other forms. */
void node_drop_nulls(const struct node *node);
struct node node_member(const struct node *parent, const char *name); /* json as node_find returns it */
struct node node_element(const struct node *parent, size_t index);

/* The piece of the body behind a marker in the envelope. NULL when the value is not a marker. */
const struct lifted_text *node_lifted(const struct reading *reading, const struct node *node);
/*
 * Whether the marker stands for a tensor that was sent beside the text. The markers of these tensors are numbered on
 * from those of skim; *number counts from 0.
 */
bool node_attached(const struct reading *reading, const struct node *node, size_t *number);
bool node_is_array(const struct reading *reading, const struct node *node);
/*
 * Reads the value of a string, lifted or not. False when the node is not a string. The text is not terminated; it may
 * hold a NUL that was escaped.
 */
bool node_string(const struct reading *reading, const struct node *node, const char **text, size_t *length);
/* The first string within a list, or within lists in it; of a string, the string itself. False: there is none. */
bool node_first_string(const struct reading *reading, const struct node *node, const char **text, size_t *length);
void node_pointer(const struct node *node, char to[JSON_POINTER_MAX]);

/* Records a failure of node; the message begins with its pointer. */
attn_status node_fail(struct reading *reading, const struct node *node, attn_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "… must be <wanted>, received …": ATTN_ERR_FIELD for a wrong type, ATTN_ERR_VALUE for a wrong value. */
attn_status node_fail_type(struct reading *reading, const struct node *node, const char *wanted);
attn_status node_fail_value(struct reading *reading, const struct node *node, const char *wanted);
/* As node_fail_type, with one more sentence. */
attn_status node_fail_type_with(struct reading *reading, const struct node *node, const char *wanted,
                                const char *sentence);
/* Adds a sentence to the message of the failure that was just recorded, behind a semicolon. */
void node_explain(struct reading *reading, const char *sentence);
attn_status node_fail_memory(struct reading *reading, const struct node *node);
/* count items of size bytes from the arena, for the node. NULL: something has failed, now or before. */
void *node_take(struct reading *reading, const struct node *node, size_t count, size_t size);
/* Adds line and column to reading->err: the JSON of a lifted piece is wrong at that byte. Returns ATTN_ERR_SYNTAX. */
attn_status node_place(struct reading *reading, const char *at);

/*
 * A list that is not a tensor. A list that looks like a tensor (of indices, or of words such as "NaN") was lifted; it
 * is parsed here. Release list->json by json_decref; node->json stays as it was.
 */
attn_status node_decode_list(struct reading *reading, const struct node *node, const char *wanted, struct node *list);

decode_function node_decode_bool;     /* bool */
decode_function node_decode_positive; /* double, finite and above 0 */
decode_function node_decode_seed;     /* uint64_t */
attn_status node_decode_number(struct reading *reading, const struct node *node, const char *wanted, double *value);
/* Whether a value is an integer within int64, written as 2, 2.0 or 2e0. If so, *value is that integer. */
bool node_integer_of(const json_t *json, int64_t *value);
/* An integer from low to high. */
attn_status node_decode_integer(struct reading *reading, const struct node *node, int64_t low, int64_t high,
                                int64_t *value);
/* A string that is one of count words; *index is the place of the word. */
attn_status node_decode_word(struct reading *reading, const struct node *node, const char *const *words, size_t count,
                             size_t *index);

/*
 * A member that may be written shorter than it is: "norm": "layer" for "norm": {"type": "layer"}. The long form takes
 * the place of the short one in the tree. So the decoders know one form, and a kept layer, which is written from the
 * tree, has the long form. Errors point at the short form, because that is what the client sent.
 */
struct short_form {
    const char *member; /* of the long form: the short form is its value. NULL: the long form is a list of it */
    unsigned types;     /* bit 1 << json_type for each type of value that is a short form */
    const char *wanted; /* "must be …", for values of all other types */
    bool has_switch;    /* true is {}, and false is "not given" */
    bool takes_tensor;  /* also a tensor is a short form: an object with a shape, or bytes beside the text */
};

/*
 * Puts the long form of *node into the tree. A long form stays as it is. *node is a member of an object. Afterwards its
 * json is the long form; NULL for false, which leaves the tree.
 */
attn_status short_form_spell(struct reading *reading, struct node *node, const struct short_form *form);

#endif
