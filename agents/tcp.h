/* The connections of an endpoint, with the settings asked for. */
#pragma once

struct endpoint;

/* Both: 0, or -1 with the endpoint's failure. */
int tcp_listen(struct endpoint *endpoint);
int tcp_connect(struct endpoint *endpoint);
