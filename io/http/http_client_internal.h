/* HTTP client, its inside: what its calls (http_client.c), its handles of libcurl (http_handle.h) and its
 * WebSockets (http_socket.h) share. */
#pragma once

#include <curl/curl.h>
#include <stdint.h>

#include "io/http/http_client.h"

struct http_client {
        sd_event *loop;
        CURLM *multi;
        CURLSH *share;
        sd_event_source *timer, *adding;
        struct http_call *calls;
        char *base_url, *unix_socket, *ca_file, *certificate_file, *key_file, *tls_server_name, *proxy,
                *user_agent;
        int pem[3];                    /* CA, certificate, key that came as text; -1 = none */
        struct curl_slist *resolve_to; /* the URL's host and port to where they really are, or NULL */
        bool insecure;
        unsigned idle_max_sec;
        uint64_t asked_usec; /* when the last call was started */
};
