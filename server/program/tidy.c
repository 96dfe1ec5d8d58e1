/* tidy.c: returns memory to the system when the process does not need it. */
#include "program/tidy.h"

void tidy_memory(struct tidying *tidying, attn_budget *budget, const struct metrics *metrics)
{
    const uint64_t bytes = metrics->received_bytes + metrics->sent_bytes;
    const size_t in_use = attn_budget_bytes(budget);
    const bool is_idle = in_use == 0 && bytes != tidying->known_bytes;
    if (is_idle) {
        tidying->known_bytes = bytes;
        attn_budget_trim(budget);
    }
    if (memory_has_grown(&tidying->growth, in_use + attn_budget_spare_bytes(budget)) || is_idle) {
        memory_return_free_blocks();
        memory_growth_is_dealt_with(&tidying->growth, attn_budget_bytes(budget) + attn_budget_spare_bytes(budget));
    }
}
