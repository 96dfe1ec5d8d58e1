/* compute.c: a request that computes with a kept layer. */
#include "service/registry/layer/compute.h"

#include <assert.h>

#include "service/registry/layer/conditions.h"
#include "service/registry/layer/keeper.h"

attn_status layer_call(struct call *call, layer_function *compute)
{
    struct layer_version *version;
    size_t batch = 0;
    attn_status status = layer_keeper_find(call->in.layers, call->in.names[0], call, &version);
    call->version = version;
    if (status == ATTN_OK)
        status = layer_check_conditions(version, call);
    if (status != ATTN_OK)
        return layer_keeper_confirm(call, status);
    assert(version != NULL);
    struct kept_layer layer = {version->base, &version->facts, version->number};
    struct prepared_weights *prepared =
        prepared_weights_take(layer_keeper_prepared(call->in.layers), &version->prepared, &version->facts,
                              call->in.runtime, call->out->arena, &layer.base);
    status = compute(call, &layer, &batch);
    prepared_weights_release(prepared);
    layer_keeper_count(call, version->name, status, batch);
    return status;
}
