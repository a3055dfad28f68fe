/* Texts by their content and by their number; numbers that were given back are given out again, the least
 * first. */
#include "scheduler-extender/neighbours/shared_texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void shared_texts_free(struct shared_texts *texts)
{
        for (uint32_t i = 0; i < texts->count; i++)
                free(texts->list[i]);
        free(texts->list);
        name_map_free(&texts->map);
        *texts = (struct shared_texts){ 0 };
}

static int take_number(struct shared_texts *texts, struct shared_text *text)
{
        uint32_t index = texts->free_from;

        while (index < texts->count && texts->list[index] != NULL)
                index++;
        if (index == texts->capacity) {
                uint32_t capacity = index + 32 + index / 2;
                struct shared_text **grown = realloc(texts->list, capacity * sizeof(struct shared_text *));

                if (grown == NULL)
                        return -ENOMEM;
                texts->list = grown;
                texts->capacity = capacity;
        }
        texts->list[index] = text;
        texts->count = index == texts->count ? index + 1 : texts->count;
        texts->free_from = index + 1;
        text->number = index + 1;
        return 0;
}

uint32_t shared_texts_hold(struct shared_texts *texts, const char *text)
{
        struct shared_text *shared = (struct shared_text *) name_map_find(&texts->map, text);
        size_t bytes = strlen(text) + 1;

        if (shared != NULL) {
                shared->references++;
                return shared->number;
        }
        shared = calloc(1, sizeof(*shared) + bytes);
        if (shared == NULL)
                return SHARED_TEXTS_NONE;
        memcpy(shared->text, text, bytes);
        shared->entry.key = shared->text;
        shared->references = 1;
        if (name_map_insert(&texts->map, &shared->entry) < 0) {
                free(shared);
                return SHARED_TEXTS_NONE;
        }
        if (take_number(texts, shared) < 0) {
                name_map_remove(&texts->map, &shared->entry);
                free(shared);
                return SHARED_TEXTS_NONE;
        }
        return shared->number;
}

void shared_texts_refer(struct shared_texts *texts, uint32_t number)
{
        if (number != SHARED_TEXTS_NONE)
                texts->list[number - 1]->references++;
}

bool shared_texts_release(struct shared_texts *texts, uint32_t number)
{
        struct shared_text *shared = number == SHARED_TEXTS_NONE ? NULL : texts->list[number - 1];

        if (shared == NULL || --shared->references > 0)
                return false;
        texts->list[number - 1] = NULL;
        texts->free_from = number - 1 < texts->free_from ? number - 1 : texts->free_from;
        name_map_remove(&texts->map, &shared->entry);
        free(shared);
        return true;
}

const char *shared_texts_text(const struct shared_texts *texts, uint32_t number)
{
        return number == SHARED_TEXTS_NONE ? NULL : texts->list[number - 1]->text;
}
