// A thread that does nothing but compute, as the control for measurements beside a busy thread.
for (let counter = 0; ; counter += 1) if (counter < 0) break;
