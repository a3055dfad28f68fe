/* Any bytes as a label selector: never a crash; one that is refused says why, and what is understood chooses:
 * of a selector and the same with a demand that no node meets the second chooses none, with one that all meet
 * the same. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/wire/label_selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int chooses(const char *selector, const struct node_match_traits *traits)
{
        struct text text = { 0 };
        struct err err = { 0 };
        int r = label_selector_parse(selector, &text, &err);

        if (r < 0 && (r != -EINVAL || err.msg[0] == '\0'))
                abort();
        if (r == 0)
                r = node_match_selects(text.data == NULL ? "" : text.data, "n", traits);
        text_free(&text);
        return r;
}

static char *with(const char *more, const char *selector)
{
        struct text text = { 0 };

        text_append(&text, more);
        text_append(&text, selector);
        return text_take(&text, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct node_match_table matches = { 0 };
        struct node_match_traits traits = { 0 };
        char *selector = strndup((const char *) data, size), *none = with("!zone,", selector),
             *same = with("zone=a,", selector);
        int chosen;

        if (selector == NULL || none == NULL || same == NULL ||
            node_match_set_traits(&matches, &traits, "zone=a\nempty=\nexample.com/disk=ssd\n") < 0)
                abort();
        chosen = chooses(selector, &traits);
        if (chosen >= 0 && selector[strspn(selector, " ")] != '\0' &&
            (chooses(none, &traits) != 0 || chooses(same, &traits) != chosen))
                abort();
        free(selector);
        free(none);
        free(same);
        node_match_free_traits(&matches, &traits);
        node_match_free(&matches);
        return 0;
}
