/* Names back to back in one buffer, with arrays of ages and kinds beside, and a hash table over the names. */
#include "scheduler-extender/ledger/roster.h"

#include <stdlib.h>

#include "base/hash.h"

#define GARBAGE_MIN_BYTES 4096

static void insert_slot(uint64_t *slots, uint32_t slot_count, uint64_t hash, uint32_t index)
{
        uint32_t mask = slot_count - 1, i = (uint32_t) hash & mask;

        while (slots[i] != 0)
                i = (i + 1) & mask;
        slots[i] = (hash & 0xffffffffu) << 32 | (index + 1);
}

static uint64_t hash_at(const struct roster *roster, uint32_t index)
{
        const struct roster_seat *seat = &roster->seats[index];

        return hash_bytes(roster->text + seat->name_at, seat->name_bytes, 0);
}

static bool grow_seats(struct roster *roster)
{
        uint32_t capacity = roster->capacity == 0 ? 64 : roster->capacity * 2;
        struct roster_seat *seats = realloc(roster->seats, capacity * sizeof(*seats));
        uint64_t *slots;

        if (seats == NULL)
                return false;
        roster->seats = seats;
        slots = calloc((size_t) capacity * 2, sizeof(*slots));
        if (slots == NULL)
                return false;
        for (uint32_t i = 0; i < roster->count; i++)
                insert_slot(slots, capacity * 2, hash_at(roster, i), i);
        free(roster->slots);
        roster->slots = slots;
        roster->slot_count = capacity * 2;
        roster->capacity = capacity;
        return true;
}

static bool grow_text(struct roster *roster, size_t more)
{
        size_t capacity = roster->text_capacity == 0 ? 4096 : roster->text_capacity;
        char *text;

        if (roster->text_bytes + more <= roster->text_capacity)
                return true;
        while (capacity < roster->text_bytes + more)
                capacity *= 2;
        text = realloc(roster->text, capacity);
        if (text == NULL || capacity > UINT32_MAX)
                return false;
        roster->text = text;
        roster->text_capacity = capacity;
        return true;
}

void roster_free(struct roster *roster)
{
        free(roster->seats);
        free(roster->text);
        free(roster->slots);
        *roster = (struct roster){ 0 };
}

static bool is_plain(const char *name, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if ((unsigned char) name[i] < 0x20 || name[i] == '"' || name[i] == '\\')
                        return false;
        return bytes > 0;
}

uint32_t roster_add(struct roster *roster, const char *name, size_t bytes)
{
        uint32_t index = roster->count;

        if (bytes >= UINT32_MAX || (index == roster->capacity && !grow_seats(roster)) ||
            !grow_text(roster, bytes + 1))
                return ROSTER_NONE;
        roster->seats[index] = (struct roster_seat){
                .name_at = (uint32_t) roster->text_bytes,
                .name_bytes = (uint32_t) bytes,
                .next = index + 1,
                .plain = is_plain(name, bytes),
        };
        memcpy(roster->text + roster->text_bytes, name, bytes);
        roster->text[roster->text_bytes + bytes] = '"';
        roster->text_bytes += bytes + 1;
        insert_slot(roster->slots, roster->slot_count, hash_bytes(name, bytes, 0), index);
        roster->count++;
        return index;
}

static uint32_t slot_of(const struct roster *roster, uint32_t index)
{
        uint32_t mask = roster->slot_count - 1, i = (uint32_t) hash_at(roster, index) & mask;

        while ((uint32_t) roster->slots[i] != index + 1)
                i = (i + 1) & mask;
        return i;
}

/* Removal from open addressing without tombstones: entries after the hole that may move into it do. */
static void close_hole(struct roster *roster, uint32_t hole)
{
        uint32_t mask = roster->slot_count - 1;

        for (uint32_t i = (hole + 1) & mask; roster->slots[i] != 0; i = (i + 1) & mask) {
                uint32_t home = (uint32_t) (roster->slots[i] >> 32) & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        roster->slots[hole] = roster->slots[i];
                        hole = i;
                }
        }
        roster->slots[hole] = 0;
}

/* The names that are left, again in the order of their nodes. Out of memory: later. */
static void compact(struct roster *roster)
{
        char *text = malloc(roster->text_capacity);
        size_t at = 0;

        if (text == NULL)
                return;
        for (uint32_t i = 0; i < roster->count; i++) {
                struct roster_seat *seat = &roster->seats[i];

                memcpy(text + at, roster->text + seat->name_at, seat->name_bytes + 1u);
                seat->name_at = (uint32_t) at;
                at += seat->name_bytes + 1u;
        }
        free(roster->text);
        roster->text = text;
        roster->text_bytes = at;
        roster->garbage_bytes = 0;
}

void roster_remove(struct roster *roster, uint32_t index)
{
        uint32_t last = roster->count - 1;

        close_hole(roster, slot_of(roster, index));
        roster->garbage_bytes += roster->seats[index].name_bytes + 1u;
        if (last != index) {
                uint32_t slot = slot_of(roster, last);

                roster->slots[slot] = (roster->slots[slot] >> 32) << 32 | (index + 1);
                roster->seats[index] = roster->seats[last];
        }
        roster->count--;
        roster->gone++;
        if (roster->garbage_bytes > GARBAGE_MIN_BYTES && roster->garbage_bytes > roster->text_bytes / 2)
                compact(roster);
}

uint32_t roster_find(const struct roster *roster, const char *name, size_t bytes)
{
        uint64_t hash = hash_bytes(name, bytes, 0);
        uint32_t mask = roster->slot_count - 1, i = (uint32_t) hash & mask;

        if (roster->slot_count == 0)
                return ROSTER_NONE;
        for (; roster->slots[i] != 0; i = (i + 1) & mask) {
                uint32_t index = (uint32_t) roster->slots[i] - 1;
                const struct roster_seat *seat = &roster->seats[index];

                if (roster->slots[i] >> 32 == (hash & 0xffffffffu) && seat->name_bytes == bytes &&
                    memcmp(roster->text + seat->name_at, name, bytes) == 0)
                        return index;
        }
        return ROSTER_NONE;
}

void roster_begin(struct roster *roster)
{
        if (++roster->stamp != 0)
                return;
        for (uint32_t i = 0; i < roster->count; i++) /* wrapped: no node may look as if it had been named */
                roster->seats[i].stamp = 0;
        roster->stamp = 1;
}

bool roster_named(struct roster *roster, uint32_t before, uint32_t index)
{
        struct roster_seat *seat = &roster->seats[index];
        bool fresh = seat->stamp != roster->stamp;

        if (before == ROSTER_NONE)
                roster->first = index;
        else
                roster->seats[before].next = index;
        seat->stamp = roster->stamp;
        return fresh;
}
