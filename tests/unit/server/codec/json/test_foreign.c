/*
 * test_foreign.c: tests of server/codec/json/habit.c: words of other programs in lists.
 */
#include "codec/json/habit.h"

#include <check.h>
#include <stddef.h>

#include "check_main.h"

static const char list[] = "q_proj Wq to_q attention_mask";

START_TEST(a_word_is_found_however_it_is_spelt)
{
    static const char *const found[] = {"q_proj",
                                        "Q_PROJ",
                                        "qProj",
                                        "q-proj",
                                        "wq",
                                        "W_q",
                                        "attentionMask",
                                        "_wq_",
                                        "q_proj.weight",
                                        "q_proj.bias",
                                        "layers.0.self_attn.q_proj.weight",
                                        "attn.to_q.weight"};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        ck_assert_msg(foreign_has(list, found[i]), "%s", found[i]);
}
END_TEST

START_TEST(another_word_is_not_found)
{
    static const char *const others[] = {"",       "_",      "q",    "q_pro", "q_projs",        "q_proj Wq", ".weight",
                                         "weight", "to_q.x", "proj", ".",     "attention mask", "q_proj."};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!foreign_has(list, others[i]), "%s", others[i]);
    ck_assert(!foreign_has("", "") && !foreign_has("", "x"));
}
END_TEST

CHECK_MAIN("foreign")
{
    tcase_add_test(tests, a_word_is_found_however_it_is_spelt);
    tcase_add_test(tests, another_word_is_not_found);
}
