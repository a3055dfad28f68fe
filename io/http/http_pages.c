/* A counted buffer. */
#include "io/http/http_pages.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define SHARED_USEC UINT64_C(1000000)
#define MANY        16 /* connections */

struct http_pages_page {
        unsigned references;
        size_t size_bytes;
        char *bytes;
        const char *content_type;
};

void http_pages_unref(void *userdata)
{
        struct http_pages_page *page = userdata;

        if (page == NULL || --page->references > 0)
                return;
        free(page->bytes);
        free(page);
}

const char *http_pages_bytes(const struct http_pages_page *page, size_t *ret_bytes)
{
        *ret_bytes = page->size_bytes;
        return page->bytes;
}

struct http_pages_page *http_pages_new(char *bytes, size_t size_bytes, const char *content_type)
{
        struct http_pages_page *page = calloc(1, sizeof(*page));

        if (page == NULL) {
                free(bytes);
                return NULL;
        }
        *page = (struct http_pages_page){
                .references = 1, .size_bytes = size_bytes, .bytes = bytes, .content_type = content_type
        };
        return page;
}

struct http_pages_page *http_pages_ref(struct http_pages_page *page)
{
        page->references++;
        return page;
}

void http_pages_answer(struct http_pages_page *page, struct http_reply *reply)
{
        *reply = (struct http_reply){ .page = http_pages_ref(page), .content_type = page->content_type };
}

bool http_pages_share(const struct http_pages *pages, const struct http_route *route, unsigned connections,
                      uint64_t now_usec, struct http_reply *reply)
{
        for (size_t i = 0; i < HTTP_PAGES_MAX; i++) {
                struct http_pages_page *page = pages->kept[i].route == route ? pages->kept[i].page : NULL;

                if (page != NULL && (page->references > 1 || connections > MANY) &&
                    now_usec < pages->kept[i].made_usec + SHARED_USEC) {
                        http_pages_answer(page, reply);
                        return true;
                }
        }
        return false;
}

void http_pages_keep(struct http_pages *pages, const struct http_route *route, uint64_t now_usec,
                     struct http_reply *reply)
{
        struct http_pages_page *page;
        size_t i = 0;

        while (i < HTTP_PAGES_MAX && pages->kept[i].route != NULL && pages->kept[i].route != route)
                i++;
        if (i == HTTP_PAGES_MAX || reply->body == NULL || (reply->status != 0 && reply->status != 200) ||
            (page = calloc(1, sizeof(*page))) == NULL)
                return;
        *page = (struct http_pages_page){ .references = 1,
                                          .size_bytes = reply->body_bytes,
                                          .bytes = reply->body,
                                          .content_type = reply->content_type };
        http_pages_unref(pages->kept[i].page);
        pages->kept[i].route = route;
        pages->kept[i].page = page;
        pages->kept[i].made_usec = now_usec;
        http_pages_answer(page, reply);
}

void http_pages_free(struct http_pages *pages)
{
        for (size_t i = 0; i < HTTP_PAGES_MAX; i++)
                http_pages_unref(TAKE(pages->kept[i].page));
}
