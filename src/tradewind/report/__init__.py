"""What there is to say of a run, in figures: pure, from its journal, its money and its metrics.

figures.py    Report, and what it consists of
assemble.py   all of it together
stays.py      the legs, and the launches that were refused
course.py     how far the run was when, and when it will be done
purse.py      what it cost, and what else it would have
curves.py     what the job has measured, without a seam where legs meet
capacity.py   how machines could be had, and for how long
foresight.py  what would have been paid by whoever had known all of that before

Pages and terminals only put this into shape.
"""
