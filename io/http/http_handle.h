/* HTTP handle: a handle of libcurl as a client's options want it: where to, by which keys, trusting whom. */
#pragma once

#include <curl/curl.h>

struct http_client;

/* http_handle_set() - everything but the URL and the request. */
void http_handle_set(const struct http_client *client, CURL *easy);

/* http_handle_error() - a negative errno as struct http_call_result has it; 0 for CURLE_OK. */
int http_handle_error(CURLcode code);
