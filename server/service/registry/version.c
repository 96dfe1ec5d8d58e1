/* version.c: counts the references of a version. */
#include "service/registry/version.h"

#include <stdio.h>

void version_init(struct version *version, thing_kind kind, const char *name, void (*destroy)(struct version *self))
{
    *version = (struct version){.kind = kind, .destroy = destroy};
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
    if (version != NULL && atomic_fetch_sub_explicit(&version->references, 1, memory_order_acq_rel) == 1)
        version->destroy(version);
}
