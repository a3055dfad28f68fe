/* Label selector: what people write to choose nodes by their labels, as kubectl takes it:
 *
 *     zone=a,disk!=hdd,model in (h100, a100),tier notin (test),gpu,!spot
 *
 * "==" is "=". All of it must hold; != and notin hold as well where there is no such label. "" chooses every
 * node. It becomes a text of scheduler-extender/decide/node_match.h, for node_match_selects(). Pure. */
#pragma once

#include "base/err.h"
#include "base/text.h"

/* label_selector_parse() - @ret: the text is appended. Return: 0; -EINVAL with a sentence that says where it
 * is wrong and what may stand there; -ENOMEM. */
int label_selector_parse(const char *selector, struct text *ret, struct err *err);
