/*
 * test_text.c: small readings of text: lists.
 */
#include "base/text.h"
#include "check_main.h"

START_TEST(lists_are_cut_outside_of_quotes)
{
    struct text_span rest = text_span_of(" a;x=\"1,2\\\"\" ,, b "), piece;
    ck_assert(text_next(&rest, ',', &piece) && text_equal(piece, "a;x=\"1,2\\\"\""));
    ck_assert(text_next(&rest, ',', &piece) && piece.length == 0);
    ck_assert(text_next(&rest, ',', &piece) && text_equal(piece, "b"));
    ck_assert(!text_next(&rest, ',', &piece));
}
END_TEST

CHECK_MAIN("text")
{
    tcase_add_test(tests, lists_are_cut_outside_of_quotes);
}
