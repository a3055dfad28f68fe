/* DRA name: what a device of the inventory is called in a ResourceSlice: a DNS label that stays the same
 * while its id does. */
#include "agent/inventory/dra_name.h"

#include <ctype.h>
#include <string.h>

#include "base/sha256.h"
#include "base/text.h"

#define DIGEST_DIGITS 8
#define CUT_BYTES     (OBJECT_NAME_LABEL_BYTES - 1 - DIGEST_DIGITS - 1) /* before "-12345678" */

static void digest(const char *text, char ret[DIGEST_DIGITS + 1])
{
        char hex[SHA256_HEX_BYTES];
        struct sha256 hash;

        sha256_init(&hash);
        sha256_update(&hash, text, strlen(text));
        sha256_final_hex(&hash, hex);
        (void) text_format(ret, DIGEST_DIGITS + 1, "%.*s", DIGEST_DIGITS, hex);
}

/* Return: is it a label, and all of the id? */
static bool plain_name(const char *id, struct dra_name *ret)
{
        size_t n = 0;

        for (; id[n] != '\0' && n + 1 < sizeof(ret->label); n++)
                ret->label[n] = (char) (isascii(id[n]) && isalnum((unsigned char) id[n])
                                                ? tolower((unsigned char) id[n])
                                                : '-');
        ret->label[n] = '\0';
        return id[n] == '\0' && object_name_label_valid(ret->label);
}

/* "x" before what begins with a '-'; no two '-' before the digest. */
static void digest_name(const char *id, struct dra_name *ret)
{
        char begin[CUT_BYTES + 1], digits[DIGEST_DIGITS + 1];
        struct dra_name plain;
        size_t n;

        (void) plain_name(id, &plain);
        digest(id, digits);
        (void) text_format(begin, sizeof(begin), "%s%s", plain.label[0] == '-' ? "x" : "", plain.label);
        for (n = strlen(begin); n > 0 && begin[n - 1] == '-'; n--)
                begin[n - 1] = '\0';
        (void) text_format(ret->label, sizeof(ret->label), "%s-%s", begin, digits);
}

static bool is_taken(const struct inventory *inventory, const struct dra_name *names, size_t own)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                if (i != own && names[i].label[0] != '\0' &&
                    strcmp(inventory->devices[i].id, inventory->devices[own].id) != 0 &&
                    strcmp(names[i].label, names[own].label) == 0)
                        return true;
        return false;
}

static bool is_repeated(const struct inventory *inventory, size_t own)
{
        for (size_t i = 0; i < own; i++)
                if (strcmp(inventory->devices[i].id, inventory->devices[own].id) == 0)
                        return true;
        return false;
}

void dra_name_alone(const char *id, struct dra_name *ret)
{
        ret->label[0] = '\0';
        if (id[0] != '\0' && !plain_name(id, ret))
                digest_name(id, ret);
}

/* All who would share a name get a digest, so that none of them depends on the order. */
void dra_name_all(const struct inventory *inventory, struct dra_name *ret)
{
        bool shares[DEVICES_MAX] = { false };

        for (size_t i = 0; i < inventory->device_count; i++) {
                ret[i].label[0] = '\0';
                if (inventory->devices[i].id[0] == '\0' || is_repeated(inventory, i))
                        continue;
                dra_name_alone(inventory->devices[i].id, &ret[i]);
        }
        for (size_t i = 0; i < inventory->device_count; i++)
                shares[i] = ret[i].label[0] != '\0' && is_taken(inventory, ret, i);
        for (size_t i = 0; i < inventory->device_count; i++)
                if (shares[i])
                        digest_name(inventory->devices[i].id, &ret[i]);
}

void dra_name_beside(const struct inventory *inventory, const struct dra_name *names, const char *text,
                     struct dra_name *ret)
{
        bool plain = plain_name(text, ret);

        for (size_t i = 0; plain && i < inventory->device_count; i++)
                plain = strcmp(names[i].label, ret->label) != 0;
        if (!plain)
                digest_name(text, ret);
}

static void name_slice(const char *node, const char *kind, size_t index, char ret[OBJECT_NAME_DNS_BYTES])
{
        char digits[DIGEST_DIGITS + 1];

        if (text_format(ret, OBJECT_NAME_DNS_BYTES, DRA_NAME_DRIVER "-%s-%s%zu", node, kind, index))
                return;
        digest(node, digits);
        (void) text_format(ret, OBJECT_NAME_DNS_BYTES, DRA_NAME_DRIVER "-%.200s-%s-%s%zu", node, digits, kind,
                           index);
}

void dra_name_counters(const char *node, size_t index, char ret[OBJECT_NAME_DNS_BYTES])
{
        name_slice(node, "counters-", index, ret);
}

void dra_name_slice(const char *node, size_t index, char ret[OBJECT_NAME_DNS_BYTES])
{
        name_slice(node, "", index, ret);
}
