/*
 * infer_whole.h: inference with a whole model (service/models) under the Open Inference Protocol.
 */
#ifndef SERVICE_INFER_INFER_WHOLE_H
#define SERVICE_INFER_INFER_WHOLE_H

#include "service/infer/model.h"

/* POST /v2/models/{model}/infer, where model->whole is not NULL. */
ATTN_MUST_CHECK attn_status infer_whole_run(struct call *call, struct model *model);

#endif
