/* HTTP body: the bytes of a request as they come, and how much memory all of a server's take together.
 *
 * Fresh memory costs a page fault every 4 KiB: the buffer of the last request serves the next one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Of a server; zero but for its maximum before the first body. */
struct http_body_pool {
        size_t bytes, bytes_max; /* of all bodies that are being read */
        char *spare;
        size_t spare_capacity;
};

/* Of a request; zero before its first byte. */
struct http_body {
        char *bytes; /* NUL-terminated by http_body_finish() */
        size_t size_bytes, capacity;
};

void http_body_pool_free(struct http_body_pool *pool);

/* http_body_reserve() - room for `more` bytes and a final 0. Return: false without memory. */
bool http_body_reserve(struct http_body *body, struct http_body_pool *pool, size_t more);
bool http_body_add(struct http_body *body, struct http_body_pool *pool, const char *bytes, size_t size_bytes);
const char *http_body_finish(struct http_body *body); /* "" when there is none */
void http_body_drop(struct http_body *body, struct http_body_pool *pool);
