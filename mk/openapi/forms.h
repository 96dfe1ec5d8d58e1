/*
 * forms.h: which forms the members of a request may have, found by running the decoders of requests.
 *
 * The linker puts the functions of forms.c in the places of those by which decoders read a value (--wrap, see
 * mk/embedded.mk): node_decode_word, decode_tensor and so on. Each notes what the decoder asks for, and gives it a value
 * with which it goes on. So a member, a word or a limit stands in the decoder alone.
 */
#ifndef OPENAPI_FORMS_H
#define OPENAPI_FORMS_H

#include <jansson.h>

/*
 * Returns {pointer: [form, …]} for every value of the request, a new reference; NULL when there is no request of that
 * name. In a pointer, "*" stands for each element of an array. A form is a schema:
 *
 *     {"type": "integer", "minimum": 1, "maximum": 4096}     {"type": "string", "enum": […]}
 *     {"$ref": "#/components/schemas/Tensor"}                {"type": "array"}, whose elements have a pointer of their own
 *
 * but objects, which are {"type": "object", "members": […]}. Where a member chooses among several objects, each has
 * also "tag": {"pattern": "strided"}, and its members have pointers such as /masks/blocks=strided/size.
 */
json_t *forms_of(const char *request);

#endif
