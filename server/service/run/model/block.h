/*
 * block.h: one block of a model for one item: its plan and its run. Private to the job.
 */
#ifndef SERVICE_RUN_MODEL_BLOCK_H
#define SERVICE_RUN_MODEL_BLOCK_H

#include "service/run/model/block_run.h"

/* Whether a layer is shown by a part, and its place there; SIZE_MAX: it is not. */
size_t model_part_place(const struct model_part *part, size_t layer);
/* Whether the maps of the block are needed for rollout or head scores. */
bool model_part_reads_maps(const struct model_part *part);

/*
 * Decodes the block and plans it for queries of q_len and keys of kv_len tokens. With shapes_only, the weights are not
 * read: the plan then has shapes, bytes and operations, and cannot run. What the block needs lives in the arena.
 */
ATTN_MUST_CHECK attn_status model_block_plan(struct model_block_run *run, size_t q_len, size_t kv_len,
                                             bool shapes_only);
/*
 * hidden is (q_len, d); encoded is the encoder's output, NULL without one. The wanted steps are written to the outputs.
 * next receives the block's output, q_len * d numbers. Everything that the run takes from the arena is given back.
 */
ATTN_MUST_CHECK attn_status model_block_run(struct model_job *job, const struct model_block *block,
                                            struct model_part *part, size_t item, const attn_tensor *hidden,
                                            const attn_tensor *encoded, void *next);

#endif
