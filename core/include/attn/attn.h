/*
 * attn.h: the whole library.
 *
 *   attention.h   attention on plain arrays, in one call
 *   plan.h        a request with masks, weights, options: checked and weighed; multihead.h runs it
 *   gradient.h    its gradients
 *   model.h       what a model has around its layers; analysis.h: rollout and roles of heads
 *   runtime.h     threads and kernels; arena.h: memory; status.h: errors; tensor.h: views of numbers
 */
#ifndef ATTN_H
#define ATTN_H

#include "attn/analysis.h"
#include "attn/arena.h"
#include "attn/attention.h"
#include "attn/diagnose.h"
#include "attn/gradient.h"
#include "attn/mask.h"
#include "attn/mechanism.h"
#include "attn/model.h"
#include "attn/multihead.h"
#include "attn/panels.h"
#include "attn/plan.h"
#include "attn/position_bias.h"
#include "attn/rope.h"
#include "attn/runtime.h"
#include "attn/status.h"
#include "attn/tensor.h"
#include "attn/version.h"

#endif
