/*
 * short_form.h: members that may be written shorter than they are: "norm": "layer" for "norm": {"type": "layer"}.
 *
 * The long form takes the place of the short one in the tree. So the decoders know one form, and a kept layer, which is
 * written from the tree, has the long form. Errors point at the short form, because that is what the client sent.
 */
#ifndef CODEC_JSON_SHORT_FORM_H
#define CODEC_JSON_SHORT_FORM_H

#include "codec/json/node.h"

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
