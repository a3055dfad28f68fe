/* Buffers that double, and the one that is kept. */
#include "io/http/http_body.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FIRST_BYTES     4096
#define SPARE_MAX_BYTES ((size_t) 1 << 20)

void http_body_pool_free(struct http_body_pool *pool)
{
        free(pool->spare);
        *pool = (struct http_body_pool){ 0 };
}

static void account(struct http_body *body, struct http_body_pool *pool, size_t capacity)
{
        pool->bytes += capacity - body->capacity;
        body->capacity = capacity;
}

static bool take_spare(struct http_body *body, struct http_body_pool *pool, size_t need)
{
        if (body->bytes != NULL || pool->spare_capacity < need)
                return false;
        body->bytes = TAKE(pool->spare);
        account(body, pool, pool->spare_capacity);
        pool->spare_capacity = 0;
        return true;
}

bool http_body_reserve(struct http_body *body, struct http_body_pool *pool, size_t more)
{
        size_t need = body->size_bytes + more + 1,
               capacity = body->capacity != 0 ? body->capacity : FIRST_BYTES;
        char *bytes;

        if (need <= body->capacity || take_spare(body, pool, need))
                return true;
        while (capacity < need)
                capacity *= 2;
        bytes = realloc(body->bytes, capacity);
        if (bytes == NULL)
                return false;
        body->bytes = bytes;
        account(body, pool, capacity);
        return true;
}

bool http_body_add(struct http_body *body, struct http_body_pool *pool, const char *bytes, size_t size_bytes)
{
        if (!http_body_reserve(body, pool, size_bytes))
                return false;
        memcpy(body->bytes + body->size_bytes, bytes, size_bytes);
        body->size_bytes += size_bytes;
        return true;
}

const char *http_body_finish(struct http_body *body)
{
        if (body->bytes == NULL)
                return "";
        body->bytes[body->size_bytes] = '\0';
        return body->bytes;
}

void http_body_drop(struct http_body *body, struct http_body_pool *pool)
{
        if (body->bytes != NULL && body->capacity <= SPARE_MAX_BYTES &&
            body->capacity > pool->spare_capacity) {
                free(pool->spare);
                pool->spare = body->bytes;
                pool->spare_capacity = body->capacity;
        } else
                free(body->bytes);
        account(body, pool, 0);
        *body = (struct http_body){ 0 };
}
