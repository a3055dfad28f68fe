#include "agent/discovery/memory_type.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define TABLE_BYTES ((size_t) 256 * 1024) /* a table of a large server has 60 KiB */
#define TYPE_MEMORY 17                    /* SMBIOS: Memory Device */
#define OFFSET_SIZE 0x0c
#define OFFSET_TYPE 0x12

/* SMBIOS 3.7, 7.18.2 */
static const struct {
        uint8_t code;
        const char *name;
} types[] = {
        { 0x18, "DDR3" }, { 0x1a, "DDR4" }, { 0x1d, "LPDDR3" }, { 0x1e, "LPDDR4" }, { 0x20, "HBM" },
        { 0x21, "HBM2" }, { 0x22, "DDR5" }, { 0x23, "LPDDR5" }, { 0x24, "HBM3" },   { 0x13, "DDR2" },
};

static const char *type_name(uint8_t code)
{
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i].code == code)
                        return types[i].name;
        return NULL;
}

/* One structure: type, length, handle, formatted part, then strings that end with an empty one.
 * Return: where the next begins, or `size` at the end. */
static size_t next_structure(const uint8_t *table, size_t size, size_t at)
{
        at += table[at + 1];
        while (at + 1 < size && (table[at] != 0 || table[at + 1] != 0))
                at++;
        return at + 2 < size ? at + 2 : size;
}

void scan_memory_type(const struct tree *tree, char *ret, size_t ret_bytes)
{
        CLEANUP(free_p) uint8_t *table = NULL;
        ssize_t size;

        if (!tree_has(tree, "sys/firmware/dmi/tables/DMI"))
                return;
        table = malloc(TABLE_BYTES);
        size = table == NULL ? -1 : tree_read(tree, "sys/firmware/dmi/tables/DMI", table, TABLE_BYTES);
        for (size_t at = 0; size > 0 && at + 4 < (size_t) size;
             at = next_structure(table, (size_t) size, at)) {
                const uint8_t *structure = table + at;
                const char *name;

                if (structure[1] < 4)
                        return;
                if (structure[0] != TYPE_MEMORY || structure[1] <= OFFSET_TYPE ||
                    at + OFFSET_TYPE >= (size_t) size ||
                    (structure[OFFSET_SIZE] | structure[OFFSET_SIZE + 1]) == 0)
                        continue;
                name = type_name(structure[OFFSET_TYPE]);
                if (name != NULL) {
                        (void) text_copy(ret, ret_bytes, name);
                        return;
                }
        }
}
