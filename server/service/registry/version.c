/* version.c: counts the references of a version, confirms what was read from it, and knows the program's own models. */
#include "service/registry/version.h"

#include <stdio.h>

#include "base/array.h"

void version_init(struct version *version, const struct version_kind *of, const char *name)
{
    *version = (struct version){.of = of};
    atomic_init(&version->references, 1);
    snprintf(version->name, sizeof version->name, "%s", name);
}

void version_fix(struct version *version)
{
    version->is_fixed = true;
    version->kept_bytes = 0;
}

struct version *version_keep(struct version *version)
{
    if (version != NULL)
        atomic_fetch_add_explicit(&version->references, 1, memory_order_relaxed);
    return version;
}

void version_release(struct version *version)
{
    if (version == NULL || atomic_fetch_sub_explicit(&version->references, 1, memory_order_acq_rel) != 1)
        return;
    struct version *owner = version->owner;
    version->of->destroy(version);
    version_release(owner); /* a model, which has no owner */
}

static bool look(struct version *version)
{
    if (!atomic_load(&version->is_overwritten) && version->of->look(version))
        atomic_store(&version->is_overwritten, true);
    return atomic_load(&version->is_overwritten);
}

bool version_is_overwritten(struct version *version)
{
    return look(version) || (version->owner != NULL && look(version->owner));
}

attn_status version_refuse_overwritten(struct call *call, thing_kind kind, const char *name)
{
    return call_refuse(call, CALL_CONFLICT,
                       kind == KIND_LAYER ? "the file of the layer \"%s\" is being written to; try again later"
                                          : "the model \"%s\" is being read; try again later",
                       name);
}

attn_status version_confirm(struct call *call, attn_status status)
{
    if (call->version == NULL || !version_is_overwritten(call->version))
        return status;
    return version_refuse_overwritten(call, call->version->of->kind, call->version->name);
}

const char *own_model_name(size_t number)
{
#define NAME_OF(name) #name,
    static const char *const names[] = {OWN_MODELS(NAME_OF)};
    return number < ARRAY_LENGTH(names) ? names[number] : NULL;
}

bool is_own_model(struct text_span name)
{
    const char *own;
    for (size_t i = 0; (own = own_model_name(i)) != NULL; i++)
        if (text_equal(name, own))
            return true;
    return false;
}
