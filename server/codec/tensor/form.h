/* form.h: the three forms of a tensor in JSON, for requests and answers alike. tensor/write.h shows them. */
#ifndef CODEC_TENSOR_FORM_H
#define CODEC_TENSOR_FORM_H

typedef enum { TENSOR_FORM_NESTED, TENSOR_FORM_FLAT, TENSOR_FORM_BASE64 } tensor_form;

#endif
