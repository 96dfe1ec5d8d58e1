/*
 * documents.h: the document that a key or a query belongs to. Only for masks with documents.
 */
#ifndef ATTN_MASK_DOCUMENTS_H
#define ATTN_MASK_DOCUMENTS_H

#include "mask/resolved.h"

/* The ids of neighbours are documents_key_stride[1] apart. */
static inline const int64_t *attn_document_of_key(const attn_mask *mask, size_t b, size_t j)
{
    return mask->documents_key + (ptrdiff_t)b * mask->documents_key_stride[0] +
           (ptrdiff_t)j * mask->documents_key_stride[1];
}

static inline int64_t attn_document_of_query(const attn_mask *mask, size_t b, size_t i)
{
    return mask->documents_query[(ptrdiff_t)b * mask->documents_query_stride[0] +
                                 (ptrdiff_t)i * mask->documents_query_stride[1]];
}

#endif
