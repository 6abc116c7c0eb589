/* The files of an endpoint's flows. */
#pragma once

struct endpoint;

/* Open them, and begin to fill a sender's. 0 or an errno value. */
int files_begin(struct endpoint *endpoint);
void files_serve(struct endpoint *endpoint);
