/* Lines of selectors, affinity and tolerations against the labels and taints of a node, each pair judged
 * once. */
#include "scheduler-extender/decide/node_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/wire/pod_words.h"

/* Of one text. */
struct node_match_answers {
        uint8_t *known; /* by node index: enum answer */
        uint32_t known_count;
        uint64_t generation; /* of the answers */
};

enum answer { ANSWER_OPEN, ANSWER_YES, ANSWER_NO };

static bool word_number(const struct pod_word *word, int64_t *ret)
{
        char number[24];

        return text_format(number, sizeof(number), "%.*s", (int) word->bytes, word->at) &&
               text_parse_int64(number, ret) == 0;
}

static bool find_label(const struct node_match_traits *traits, const struct pod_word *key,
                       struct pod_word *ret)
{
        for (uint32_t i = 0; i < traits->count; i++) {
                const char *text = traits->list[i]->text;

                if (strncmp(text, key->at, key->bytes) != 0 || text[key->bytes] != '=' || text[0] == '!')
                        continue;
                *ret = (struct pod_word){ .at = text + key->bytes + 1,
                                          .bytes = strlen(text + key->bytes + 1) };
                return true;
        }
        return false;
}

static bool compares(char relation, const struct pod_word *value, const char *line, const char *end)
{
        struct pod_word word;
        int64_t have, limit;

        if (!pod_words_next(&line, end, &word) || !word_number(value, &have) || !word_number(&word, &limit))
                return false;
        return relation == 'g' ? have > limit : have < limit;
}

/* One line that demands something of the node. @line: behind the operator. */
static bool backfills(char relation, const char *line, const char *end, const char *node,
                      const struct node_match_traits *traits)
{
        struct pod_word key, value, name = { .at = node, .bytes = strlen(node) };
        bool there;

        if (relation == 'I' || relation == 'N')
                return pod_words_among(&name, line, end) == (relation == 'I');
        if (!pod_words_next(&line, end, &key))
                return false;
        there = find_label(traits, &key, &value);
        switch (relation) {
        case '=':
        case 'i':
                return there && pod_words_among(&value, line, end);
        case 'n':
                return !there || !pod_words_among(&value, line, end);
        case 'e':
                return there;
        case 'a':
                return !there;
        case 'g':
        case 'l':
                return there && compares(relation, &value, line, end);
        default:
                return false;
        }
}

static void say(char *why, size_t bytes, const char *sentence, const char *line, const char *end)
{
        if (why == NULL)
                return;
        (void) text_format(why, bytes, sentence, (int) (end - line), line);
        for (char *c = why; *c != '\0'; c++)
                if (*c == '\t')
                        *c = '=';
}

static bool selected(const char *text, const char *node, const struct node_match_traits *traits, char *why,
                     size_t why_bytes)
{
        bool terms = false, term = false, found = false;

        for (const char *line = text, *next; *line != '\0'; line = next) {
                const char *end = strchrnul(line, '\n'), *rest = end - line >= 2 ? line + 2 : NULL;

                next = pod_words_line(end);
                if (line[0] == '=' && !backfills('=', rest, end, node, traits)) {
                        say(why, why_bytes, "the pod's nodeSelector asks for the label %.*s", rest, end);
                        return false;
                }
                if (line[0] == '=' || line[0] == 't')
                        continue;
                if (line[0] == '|') {
                        found = found || term;
                        terms = term = true;
                } else {
                        term = term && backfills(line[0], rest, end, node, traits);
                }
        }
        if (!terms || found || term)
                return true;
        say(why, why_bytes, "no term of the pod's required node affinity holds here%.*s", "", "");
        return false;
}

/* @taint: "KEY=VALUE:EFFECT" */
static bool tolerates(const char *line, const char *end, const char *taint)
{
        const char *equals = strchr(taint, '='), *colon = strrchr(taint, ':');
        struct pod_word key, relation, value, effect;

        if (!pod_words_next(&line, end, &key) || !pod_words_next(&line, end, &relation) ||
            !pod_words_next(&line, end, &value) || !pod_words_next(&line, end, &effect))
                return false;
        if (effect.bytes > 0 && !pod_words_equal(&effect, colon + 1, strlen(colon + 1)))
                return false;
        if (key.bytes > 0 && !pod_words_equal(&key, taint, (size_t) (equals - taint)))
                return false;
        if (!pod_words_equal(&relation, "=", 1))
                return true;
        return key.bytes > 0 && pod_words_equal(&value, equals + 1, (size_t) (colon - equals) - 1);
}

static bool tolerated(const char *text, const char *taint)
{
        for (const char *line = text, *next; *line != '\0'; line = next) {
                const char *end = strchrnul(line, '\n');

                next = pod_words_line(end);
                if (line[0] == 't' && end - line >= 2 && tolerates(line + 2, end, taint))
                        return true;
        }
        return false;
}

bool node_match_selects(const char *text, const char *node, const struct node_match_traits *traits)
{
        return selected(text, node, traits, NULL, 0);
}

bool node_match_tolerates(const char *text, const struct node_match_traits *traits)
{
        for (uint32_t i = 0; i < traits->count; i++)
                if (traits->list[i]->text[0] == '!' && !tolerated(text, traits->list[i]->text + 1))
                        return false;
        return true;
}

bool node_match_judge(const char *text, const char *node, const struct node_match_traits *traits, char *why,
                      size_t why_bytes)
{
        if (!selected(text, node, traits, why, why_bytes))
                return false;
        for (uint32_t i = 0; i < traits->count; i++) {
                const char *taint = traits->list[i]->text;

                if (taint[0] != '!' || tolerated(text, taint + 1))
                        continue;
                say(why, why_bytes, "the pod does not tolerate the node's taint %.*s", taint + 1,
                    taint + strlen(taint));
                return false;
        }
        return true;
}

void node_match_free(struct node_match_table *matches)
{
        for (uint32_t i = 0; i < matches->answer_capacity; i++)
                free(matches->answers[i].known);
        free(matches->answers);
        shared_texts_free(&matches->texts);
        name_map_free(&matches->traits);
        *matches = (struct node_match_table){ 0 };
}

static bool grow(struct node_match_table *matches, uint32_t number)
{
        uint32_t capacity = number + 8 + number / 2;
        struct node_match_answers *grown;

        if (number <= matches->answer_capacity)
                return true;
        grown = realloc(matches->answers, capacity * sizeof(*grown));
        if (grown == NULL)
                return false;
        memset(grown + matches->answer_capacity, 0, (capacity - matches->answer_capacity) * sizeof(*grown));
        matches->answers = grown;
        matches->answer_capacity = capacity;
        return true;
}

uint32_t node_match_hold(struct node_match_table *matches, const char *text)
{
        uint32_t number = shared_texts_hold(&matches->texts, text);

        if (grow(matches, number))
                return number;
        (void) shared_texts_release(&matches->texts, number);
        return NODE_MATCH_ANY;
}

void node_match_refer(struct node_match_table *matches, uint32_t match)
{
        shared_texts_refer(&matches->texts, match);
}

void node_match_release(struct node_match_table *matches, uint32_t match)
{
        if (!shared_texts_release(&matches->texts, match))
                return;
        free(matches->answers[match - 1].known);
        matches->answers[match - 1] = (struct node_match_answers){ 0 }; /* its number will be another's */
}

const char *node_match_text(const struct node_match_table *matches, uint32_t match)
{
        return shared_texts_text(&matches->texts, match);
}

void node_match_forget(struct node_match_table *matches)
{
        matches->generation++;
}

static struct node_match_trait *hold_trait(struct node_match_table *matches, const char *text, size_t bytes)
{
        struct node_match_trait *made = calloc(1, sizeof(*made) + bytes + 1), *known;

        if (made == NULL)
                return NULL;
        memcpy(made->text, text, bytes);
        made->entry.key = made->text;
        known = (struct node_match_trait *) name_map_find(&matches->traits, made->text);
        if (known != NULL || name_map_insert(&matches->traits, &made->entry) < 0) {
                free(made);
                made = known;
        }
        if (made != NULL)
                made->references++;
        return made;
}

static void release_traits(struct node_match_table *matches, struct node_match_trait **list, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (--list[i]->references == 0) {
                        name_map_remove(&matches->traits, &list[i]->entry);
                        free(list[i]);
                }
        free(list);
}

static uint32_t count_lines(const char *lines)
{
        uint32_t count = 0;

        for (const char *line = lines; *line != '\0'; count++) {
                const char *end = strchrnul(line, '\n');

                line = pod_words_line(end);
        }
        return count;
}

static void put_traits(struct node_match_table *matches, struct node_match_traits *traits,
                       struct node_match_trait **list, uint32_t count)
{
        bool same = count == traits->count;

        for (uint32_t i = 0; i < count && same; i++)
                same = list[i] == traits->list[i];
        if (!same)
                matches->generation++;
        release_traits(matches, traits->list, traits->count);
        *traits = (struct node_match_traits){ .list = list, .count = count };
}

int node_match_set_traits(struct node_match_table *matches, struct node_match_traits *traits,
                          const char *lines)
{
        uint32_t wanted = lines == NULL ? 0 : count_lines(lines), count = 0;
        struct node_match_trait **list =
                wanted == 0 ? NULL : calloc(wanted, sizeof(struct node_match_trait *));

        if (wanted > 0 && list == NULL)
                return -ENOMEM;
        for (const char *line = lines; count < wanted; count++) {
                const char *end = strchrnul(line, '\n');

                list[count] = hold_trait(matches, line, (size_t) (end - line));
                if (list[count] == NULL) {
                        release_traits(matches, list, count);
                        return -ENOMEM;
                }
                line = pod_words_line(end);
        }
        put_traits(matches, traits, list, count);
        return 0;
}

int node_match_copy_traits(struct node_match_table *to, struct node_match_traits *traits,
                           const struct node_match_traits *from)
{
        struct node_match_trait **list =
                from->count == 0 ? NULL : calloc(from->count, sizeof(struct node_match_trait *));

        if (from->count > 0 && list == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < from->count; i++) {
                list[i] = hold_trait(to, from->list[i]->text, strlen(from->list[i]->text));
                if (list[i] == NULL) {
                        release_traits(to, list, i);
                        return -ENOMEM;
                }
        }
        put_traits(to, traits, list, from->count);
        return 0;
}

void node_match_free_traits(struct node_match_table *matches, struct node_match_traits *traits)
{
        matches->generation += traits->count > 0;
        release_traits(matches, traits->list, traits->count);
        *traits = (struct node_match_traits){ 0 };
}

/* Room for the answer, or NULL: then it is worked out each time. */
static uint8_t *answer_of(const struct node_match_table *matches, uint32_t number, uint32_t index)
{
        struct node_match_answers *match = &matches->answers[number - 1];

        if (match->generation != matches->generation && match->known != NULL)
                memset(match->known, ANSWER_OPEN, match->known_count);
        match->generation = matches->generation;
        if (index >= match->known_count) {
                uint32_t count = index + 64 + index / 2;
                uint8_t *grown = index < UINT32_MAX / 2 ? realloc(match->known, count) : NULL;

                if (grown == NULL)
                        return NULL;
                memset(grown + match->known_count, ANSWER_OPEN, count - match->known_count);
                match->known = grown;
                match->known_count = count;
        }
        return &match->known[index];
}

bool node_match_takes(const struct node_match_table *matches, uint32_t number, const char *node,
                      uint32_t index, const struct node_match_traits *traits)
{
        uint8_t *answer = number == NODE_MATCH_ANY ? NULL : answer_of(matches, number, index);
        bool takes;

        if (number == NODE_MATCH_ANY)
                return true;
        if (answer != NULL && *answer != ANSWER_OPEN)
                return *answer == ANSWER_YES;
        takes = node_match_judge(node_match_text(matches, number), node, traits, NULL, 0);
        if (answer != NULL)
                *answer = takes ? ANSWER_YES : ANSWER_NO;
        return takes;
}
