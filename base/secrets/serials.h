/* Serials: what identifies a piece of hardware, replaced by another of the same form, equal for equal: a
 * reader can still follow one device through many pages. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* serials_mask() - in place. Digits become other digits, letters other letters (a-f where the token could be
 * hexadecimal), the rest stays: not to be traced back without guessing the whole token. */
void serials_mask(char *token, size_t size_bytes);

/* serials_is_uuid() - is it of the form of a UUID? */
bool serials_is_uuid(const char *token, size_t size_bytes);

/* serials_prefix() - how many bytes at the beginning of a device's id say whose it is ("GPU-", "xilinx-"):
 * they stay. */
size_t serials_prefix(const char *id, size_t size_bytes);
