/* A rule a function. */
#include "job/world/hint.h"

#include <string.h>

#include "job/world/names.h"

static bool says_something(const char *line, size_t length)
{
        return length > 0 && line[0] != ' ' && line[0] != '\t' && line[length - 1] != ':';
}

size_t hint_words(const char *text, const char **ret)
{
        size_t end = strlen(text), last = 0, begin;

        *ret = text;
        while (end > 0) {
                while (end > 0 && strchr("\n ", text[end - 1]) != NULL)
                        end--;
                for (begin = end; begin > 0 && text[begin - 1] != '\n';)
                        begin--;
                if (last == 0 || says_something(text + begin, end - begin)) {
                        *ret = text + begin;
                        last = end - begin;
                }
                if (says_something(text + begin, end - begin))
                        break;
                end = begin;
        }
        return last;
}

static const char *const memory[] = { "out of memory", "allocate memory", "MemoryError", "bad_alloc", NULL },
                         *const peers[] = { "connection", "peer", "broken pipe", NULL },
                         *const unused[] = { "did not receive grad", NULL };

static bool speaks_of(const char *words, const char *const *matter)
{
        while (*matter != NULL && strcasestr(words, *matter) == NULL)
                matter++;
        return *matter != NULL;
}

/* The worker that ended well before this one, or rank_count. Whoever waits for it fails, and cannot say so.
 */
static size_t left_before(const struct world *world, size_t rank)
{
        for (size_t i = 0; i < world->rank_count; i++) {
                const struct world_rank *other = &world->ranks[i];

                if (other->ended && other->exit_code == 0 && !world->places[other->place].server &&
                    other->ended_usec < world->ranks[rank].ended_usec)
                        return i;
        }
        return world->rank_count;
}

void hint_add(const struct world *world, size_t rank, struct text *to)
{
        size_t left = left_before(world, rank);

        if (speaks_of(world->words, memory))
                text_printf(to,
                            "; its share is %llu of %llu samples a step: give a smaller spec.globalBatch, or "
                            "chips with more memory",
                            (unsigned long long) world->ranks[rank].batch,
                            (unsigned long long) world->rules.global_batch);
        else if (speaks_of(world->words, unused))
                text_printf(to, "; the loss does not use them: leave them out of the model, or give "
                                "run.wrap(model, find_unused_parameters=True)");
        else if (left < world->rank_count && (world->words[0] == '\0' || speaks_of(world->words, peers)))
                text_printf(to, "; %s had ended before it, with exit code 0: all ranks need the same steps",
                            names_rank(world, left).text);
}
