"""What a rented machine is told at its launch, whatever cloud it is of.

luggage.py  what it needs of the store before it can ask for anything itself
told.py     the script, as text or compressed
first.sh    finds a Python, and sees to it that the machine ends
first.py    takes the kit, and becomes the bootstrap that lies in it; which machine this is, the
            cloud's own who.py says
"""
