/* Two lists, their texts, and the arrays that lists are read into. */
#include "scheduler-extender/wire/names_memory.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct names_memory_list *list)
{
        list->count = 0;
        list->any_again = false;
        list->text_bytes = 0;
        free(list->hosts);
        free(list->score_at);
        list->hosts = NULL;
        list->score_at = NULL;
}

static void free_list(struct names_memory_list *list)
{
        forget(list);
        free(list->names);
        free(list->nodes);
        free(list->again);
        free(list->text);
        *list = (struct names_memory_list){ 0 };
}

static bool is_of(const struct names_memory_list *list, const struct roster *roster)
{
        return list->text_bytes > 0 && list->roster_count == roster->count &&
               list->roster_gone == roster->gone;
}

struct names_memory_list *names_memory_find(struct names_memory *memory, const struct roster *roster,
                                            const char *at, const char *end)
{
        for (size_t i = 0; i < NAMES_MEMORY_LISTS; i++) {
                struct names_memory_list *list = &memory->lists[i];

                if (!is_of(list, roster) || (size_t) (end - at) < list->text_bytes ||
                    memcmp(at, list->text, list->text_bytes) != 0)
                        continue;
                list->met = ++memory->requests;
                return list;
        }
        return NULL;
}

struct names_memory_list *names_memory_begin(struct names_memory *memory)
{
        struct names_memory_list *oldest = &memory->lists[0];

        for (size_t i = 1; i < NAMES_MEMORY_LISTS; i++)
                if (memory->lists[i].met < oldest->met)
                        oldest = &memory->lists[i];
        forget(oldest);
        oldest->met = ++memory->requests;
        return oldest;
}

static bool grow_array(void *array, size_t capacity, size_t size)
{
        void **place = array, *grown = realloc(*place, capacity * size);

        if (grown != NULL)
                *place = grown;
        return grown != NULL;
}

bool names_memory_grow(struct names_memory_list *list, size_t at_first)
{
        size_t capacity = list->capacity == 0 ? at_first : list->capacity * 2;

        if (!grow_array(&list->names, capacity, sizeof(*list->names)) ||
            !grow_array(&list->nodes, capacity, sizeof(*list->nodes)) ||
            !grow_array(&list->again, capacity, sizeof(*list->again)))
                return false;
        list->capacity = capacity;
        return true;
}

static bool copy_text(struct names_memory_list *list, const char *text, size_t text_bytes)
{
        if (text_bytes > NAMES_MEMORY_BYTES)
                return false;
        if (text_bytes > list->text_capacity) {
                if (!grow_array(&list->text, text_bytes, 1))
                        return false;
                list->text_capacity = text_bytes;
        }
        memcpy(list->text, text, text_bytes);
        return true;
}

void names_memory_keep(struct names_memory_list *list, const struct roster *roster, const char *text,
                       size_t text_bytes)
{
        if (!copy_text(list, text, text_bytes))
                return;
        for (size_t i = 0; i < list->count; i++)
                list->names[i].escaped = list->text + (list->names[i].escaped - text);
        list->text_bytes = text_bytes;
        list->roster_count = roster->count;
        list->roster_gone = roster->gone;
}

uint8_t *names_memory_verdicts(struct names_memory *memory, const struct names_memory_list *list)
{
        if (memory->verdict_capacity < list->count || memory->verdicts == NULL) {
                if (!grow_array(&memory->verdicts, list->capacity + 1, 1))
                        return NULL;
                memory->verdict_capacity = list->capacity;
        }
        if (list->count > 0)
                memcpy(memory->verdicts, list->again, list->count);
        return memory->verdicts;
}

void names_memory_end(struct names_memory *memory)
{
        for (size_t i = 0; i < NAMES_MEMORY_LISTS; i++) {
                if (memory->lists[i].text_bytes == 0)
                        forget(&memory->lists[i]);
                if (memory->lists[i].capacity > NAMES_MEMORY_CAPACITY)
                        free_list(&memory->lists[i]);
        }
        if (memory->verdict_capacity <= NAMES_MEMORY_CAPACITY)
                return;
        free(memory->verdicts);
        memory->verdicts = NULL;
        memory->verdict_capacity = 0;
}

void names_memory_free(struct names_memory *memory)
{
        for (size_t i = 0; i < NAMES_MEMORY_LISTS; i++)
                free_list(&memory->lists[i]);
        free(memory->verdicts);
        *memory = (struct names_memory){ 0 };
}
