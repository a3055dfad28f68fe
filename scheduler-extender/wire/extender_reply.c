/* Replies are measured first and then copied into one block. */
#include "scheduler-extender/wire/extender_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Sizes are added up first, so that one block is enough and writing is copying. */
static char *put(char *to, const char *bytes, size_t size_bytes)
{
        memcpy(to, bytes, size_bytes);
        return to + size_bytes;
}

#define STRLEN(literal)  (sizeof(literal) - 1)
#define PUT(to, literal) put(to, literal, STRLEN(literal))

/* The name with its quotes, which stand around it in the request. Most names are short: 32 bytes are copied
 * whatever the length, where the text has them and what follows up to `limit` is still to be written. */
#define COPY_BYTES 32

static inline char *put_name(char *to, const char *limit, const struct extender_args *args, size_t i)
{
        const char *from = args->names[i].escaped - 1;
        size_t bytes = args->names[i].escaped_bytes + 2;

        if (bytes <= COPY_BYTES && args->end - from >= COPY_BYTES && limit - to >= COPY_BYTES)
                memcpy(to, from, COPY_BYTES);
        else
                memcpy(to, from, bytes);
        return to + bytes;
}

static char *error_reply(const char *form, const char *error, size_t *ret_bytes)
{
        CLEANUP(free_p) char *quoted = NULL;
        json_t *string = json_string(error);
        struct text text = { 0 };

        if (string == NULL)
                string = json_string("the error is not UTF-8");
        quoted = json_dumps(string, JSON_ENCODE_ANY);
        json_decref(string);
        if (quoted == NULL)
                return NULL;
        text_append(&text, form);
        text_append(&text, quoted);
        text_append(&text, "}");
        return text_take(&text, ret_bytes);
}

/* The three lists of filter's reply, each written where it will stand. */
enum list { PASSING, FAILED, UNRESOLVABLE, LISTS, NO_LIST = LISTS };

struct lists {
        uint8_t of_verdict[UINT8_MAX + 1];
        size_t bytes[LISTS + 1]; /* every entry ends in a comma, over which the list's end is written */
        char *at[LISTS];
        const char *limit[LISTS];
};

static void sort_verdicts(struct lists *lists)
{
        memset(lists->of_verdict, NO_LIST, sizeof(lists->of_verdict));
        lists->of_verdict[REASON_NONE] = PASSING;
        for (int r = REASON_NONE + 1; r < REASON_COUNT; r++)
                lists->of_verdict[r] = reason_text((enum reason) r)->unresolvable ? UNRESOLVABLE : FAILED;
}

static void add_sizes(const struct extender_args *args, struct lists *lists)
{
        size_t more[UINT8_MAX + 1] = { 0 }; /* than the name: quotes, message, comma */

        more[REASON_NONE] = 3;
        for (int r = REASON_NONE + 1; r < REASON_COUNT; r++)
                more[r] = reason_text((enum reason) r)->message_bytes + 6;
        for (size_t i = 0; i < args->node_count; i++) {
                uint8_t verdict = args->verdicts[i];

                lists->bytes[lists->of_verdict[verdict]] +=
                        verdict == REASON_NONE && args->full ? args->objects[i].size_bytes + 1
                                                             : args->names[i].escaped_bytes + more[verdict];
        }
}

static char *put_failure(char *to, const char *limit, const struct extender_args *args, size_t i)
{
        const struct reason_text *text = reason_text((enum reason) args->verdicts[i]);

        to = put_name(to, limit, args, i);
        to = PUT(to, ":\"");
        to = put(to, text->message, text->message_bytes); /* our own: nothing to escape */
        return PUT(to, "\",");
}

/* Of names that pass, and that stand in the text with nothing but a comma between two of them, as many as
 * follow each other are copied at once. @last: in, the first; out, the last of them. */
static char *put_run(char *to, const struct extender_args *args, size_t *last)
{
        const char *from = args->names[*last].escaped - 1, *end;
        size_t i = *last;

        do
                end = args->names[i].escaped + args->names[i].escaped_bytes;
        while (++i < args->node_count && args->verdicts[i] == REASON_NONE &&
               args->names[i].escaped == end + STRLEN("\",\""));
        *last = i - 1;
        return put(to, from, (size_t) (end + 1 - from));
}

static void put_entries(const struct extender_args *args, struct lists *lists)
{
        for (size_t i = 0; i < args->node_count; i++) {
                uint8_t list = lists->of_verdict[args->verdicts[i]];
                char *to;

                if (list == NO_LIST)
                        continue;
                to = lists->at[list];
                if (list != PASSING)
                        to = put_failure(to, lists->limit[list], args, i);
                else if (args->full)
                        to = PUT(put(to, args->objects[i].bytes, args->objects[i].size_bytes), ",");
                else
                        to = PUT(put_run(to, args, &i), ",");
                lists->at[list] = to;
        }
}

/* What stands before each list, and after the last. */
static const char *const before_list[2][LISTS + 1] = {
        { "{\"Nodes\":null,\"NodeNames\":[", "],\"FailedNodes\":{", "},\"FailedAndUnresolvableNodes\":{",
          "},\"Error\":\"\"}" },
        { "{\"Nodes\":{\"metadata\":{},\"items\":[", "]},\"NodeNames\":null,\"FailedNodes\":{",
          "},\"FailedAndUnresolvableNodes\":{", "},\"Error\":\"\"}" },
};

static char *put_lists(const struct extender_args *args, struct lists *lists, size_t *ret_bytes)
{
        const char *const *before = before_list[args->full];
        char *block = malloc(lists->bytes[PASSING] + lists->bytes[FAILED] + lists->bytes[UNRESOLVABLE] + 256);
        char *to = block;

        if (block == NULL)
                return NULL;
        for (int list = 0; list < LISTS; list++) {
                lists->at[list] = to + strlen(before[list]);
                lists->limit[list] = lists->at[list] + lists->bytes[list];
                to = lists->at[list] + lists->bytes[list] - (lists->bytes[list] > 0);
        }
        put_entries(args, lists);
        to = put(block, before[PASSING], strlen(before[PASSING]));
        for (int list = 0; list < LISTS; list++) { /* what comes after a list begins on its last comma */
                to += lists->bytes[list] - (lists->bytes[list] > 0);
                to = put(to, before[list + 1], strlen(before[list + 1]));
        }
        *to = '\0';
        *ret_bytes = (size_t) (to - block);
        return block;
}

char *extender_reply_filter(const struct extender_args *args, const char *error, size_t *ret_bytes)
{
        struct lists lists = { 0 };

        if (error != NULL && error[0] != '\0')
                return error_reply("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},"
                                   "\"FailedAndUnresolvableNodes\":{},\"Error\":",
                                   error, ret_bytes);
        sort_verdicts(&lists);
        add_sizes(args, &lists);
        return put_lists(args, &lists, ret_bytes);
}

/* {"Host":"NAME","Score":NN}, of which NN is two bytes: scores are put into a reply that is there. */
#define SCORE_MAX    10
#define SCORE_BYTES  2
#define HOST_BYTES   STRLEN("{\"Host\":\"\",\"Score\":10},")
#define BEHIND_BYTES (SCORE_BYTES + COPY_BYTES) /* for scores that are not told, and for put_name() */

static inline void put_score(char *to, uint8_t score)
{
        static const char digits[SCORE_MAX + 1][SCORE_BYTES + 1] = { " 0", " 1", " 2", " 3", " 4", " 5",
                                                                     " 6", " 7", " 8", " 9", "10" };

        memcpy(to, digits[score], SCORE_BYTES);
}

static size_t hosts_capacity(const struct names_memory_list *list)
{
        size_t bytes = STRLEN("[]") + 1 + BEHIND_BYTES;

        for (size_t i = 0; i < list->count; i++)
                bytes += list->names[i].escaped_bytes + HOST_BYTES;
        return bytes;
}

/* The reply but for the scores, and where each belongs; those of names that were sent before go behind the
 * text. Return: its bytes. */
static size_t put_hosts(char *block, const char *limit, const struct extender_args *args, uint32_t *score_at)
{
        const uint8_t *again = args->list->again;
        char *to = PUT(block, "[");

        for (size_t i = 0; i < args->node_count; i++) {
                if (again[i] == EXTENDER_ARGS_AGAIN)
                        continue;
                to = PUT(to, "{\"Host\":");
                to = put_name(to, limit, args, i);
                to = PUT(to, ",\"Score\":");
                score_at[i] = (uint32_t) (to - block);
                to = PUT(to, " 0},");
        }
        to -= to[-1] == ',';
        to = PUT(to, "]");
        *to = '\0';
        for (size_t i = 0; args->any_again && i < args->node_count; i++)
                if (again[i] == EXTENDER_ARGS_AGAIN)
                        score_at[i] = (uint32_t) (to + 1 - block);
        return (size_t) (to - block);
}

/* Of a list that comes again this has been done. Return: false when out of memory. */
static bool prepare_hosts(const struct extender_args *args, struct names_memory_list *list)
{
        size_t capacity = hosts_capacity(list);

        if (list->hosts != NULL)
                return true;
        if (capacity > UINT32_MAX)
                return false;
        if (list->score_at == NULL)
                list->score_at = calloc(list->count + 1, sizeof(*list->score_at));
        list->hosts = list->score_at == NULL ? NULL : malloc(capacity);
        if (list->hosts == NULL)
                return false;
        list->hosts_bytes = put_hosts(list->hosts, list->hosts + capacity, args, list->score_at);
        return true;
}

char *extender_reply_prioritize(const struct extender_args *args, const uint8_t *scores, size_t *ret_bytes)
{
        struct names_memory_list *list = args->list;
        char *block;

        *ret_bytes = STRLEN("[]");
        if (list == NULL)
                return strdup("[]");
        block = prepare_hosts(args, list) ? malloc(list->hosts_bytes + 1 + SCORE_BYTES) : NULL;
        if (block == NULL)
                return NULL;
        memcpy(block, list->hosts, list->hosts_bytes + 1);
        for (size_t i = 0; i < list->count; i++)
                put_score(block + list->score_at[i], scores[i]);
        *ret_bytes = list->hosts_bytes;
        return block;
}

char *extender_reply_bind(const char *error, size_t *ret_bytes)
{
        return error_reply("{\"Error\":", error, ret_bytes);
}
