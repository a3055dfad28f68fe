/* Array: one element more at the end of an array that grows. Pure but for the heap. */
#pragma once

#include <stddef.h>

/* array_add() - the place of a new last element, of zeros, and *count counts it.
 * @array: the address of the pointer to the first element; NULL there = there is none yet
 * @capacity: elements that there is room for, doubled when it is full; NULL = room for what is there alone,
 *            for arrays of a few, or that others made
 * Return: NULL = no memory, and all is as before. */
void *array_add(void *array, size_t *count, size_t *capacity, size_t element_bytes);
