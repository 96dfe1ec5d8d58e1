/* kept.c: a request that computes with a kept layer. */
#include "service/run/kept.h"

#include "service/registry/layer/conditions.h"
#include "service/registry/layer/keeper.h"

attn_status kept_compute(struct call *call, struct layer_version *version, kept_function *compute, void *context)
{
    struct kept_layer layer;
    struct prepared_weights *prepared = NULL;
    size_t batch = 0;
    if (version != NULL) {
        layer = (struct kept_layer){version->base, &version->facts, version->number};
        prepared = prepared_weights_take(layer_keeper_prepared(call->in.layers), &version->prepared, &version->facts,
                                         call->in.runtime, call->out->arena, &layer.base);
    }
    attn_status status = compute(call, version != NULL ? &layer : NULL, context, &batch);
    prepared_weights_release(prepared);
    layer_keeper_count(call, version != NULL ? version->common.name : NULL, status, batch);
    return status;
}

attn_status kept_call(struct call *call, kept_function *compute)
{
    struct layer_version *version;
    attn_status status = layer_keeper_find(call->in.layers, call->in.names[0], call, &version);
    call->version = version;
    if (status == ATTN_OK)
        status = layer_check_conditions(version, call);
    return status == ATTN_OK ? kept_compute(call, version, compute, NULL) : layer_keeper_confirm(call, status);
}
