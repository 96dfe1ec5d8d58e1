/* parts.h: declarations that the files of this folder share. */
#ifndef CODEC_OIP_PARTS_H
#define CODEC_OIP_PARTS_H

#include "codec/oip/oip.h"
#include "codec/request/decoder.h"

enum { OIP_INPUTS_MAX = 16, OIP_NAME_MAX = 32 };

struct oip_decoder {
    struct decoder decoder;
    struct reading *reading;             /* the decoder's */
    const struct envelope_source *layer; /* NULL: attention without weights, or a whole model */
    bool is_whole;
    unsigned has; /* of a whole model: OIP_HAS_… */
    struct oip_model_inputs whole;
    const char *binary; /* the bytes behind the JSON that no input has taken yet */
    size_t binary_bytes;
    struct envelope_attachment attachments[OIP_INPUTS_MAX];
    size_t count;
    bool query_is_f64;
    bool is_binary_output; /* parameter binary_data_output */
    json_int_t timeout_us; /* parameter timeout; 0: none */
};

/* Whether a parameter only tells other servers how to decode tensors. It has no meaning here. */
bool oip_is_hint(const char *name);
/* Refuses a parameter of an extension that is not offered, with the reason. */
attn_status oip_check_offered(struct oip_decoder *d, const struct node *parameter);
/* The parameters of a request, an input or an output are an object of known members; hints are known everywhere. */
attn_status oip_check_parameters(struct oip_decoder *d, const struct node *parameters, const char *known);
/*
 * Counts the objects of the list. False when a value is not a list of objects. An empty list was lifted, like lists of
 * numbers.
 */
bool oip_list_length(const struct oip_decoder *d, const struct node *list, size_t *length);
/* Writes the name of an input or output in capitals, as the protocol spells it. Returns to. */
const char *oip_capitals(const char *name, char to[OIP_NAME_MAX]);
/* Reads the member "inputs" of root into attachments. It fails when bytes of binary are left over. */
attn_status oip_read_inputs(struct oip_decoder *d, const struct node *root);

#endif
